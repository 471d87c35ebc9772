#include "base/did_you_mean.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace embertable {
namespace {

TEST(EditDistance, CountsLettersToInsertDropOrReplace) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("adagrad", "adagrad"), 0u);
  EXPECT_EQ(edit_distance("adagad", "adagrad"), 1u);
  EXPECT_EQ(edit_distance("adagrda", "adagrad"), 2u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(DidYouMean, NamesTheFirstOfTheLeastDistance) {
  const std::vector<std::string> names = {"adagrad", "adam", "sgd", "sgb"};
  EXPECT_EQ(did_you_mean("adagard", names), "; the nearest is 'adagrad'");
  EXPECT_EQ(did_you_mean("adm", names), "; the nearest is 'adam'");
  EXPECT_EQ(did_you_mean("sg", names), "; the nearest is 'sgd'");
  EXPECT_EQ(did_you_mean("", names), "; the nearest is 'sgd'");
}

TEST(DidYouMean, SaysNothingIfNothingIsKnown) {
  EXPECT_EQ(did_you_mean("adam", std::vector<std::string>()), "");
}

TEST(MustBeOneOf, ListsWhatIsKnownAndTheNearest) {
  EXPECT_EQ(must_be_one_of(std::vector<std::string>{"rows", "columns"}, "row"),
            "must be one of rows, columns, got \"row\"; the nearest is 'rows'");
}

}  // namespace
}  // namespace embertable
