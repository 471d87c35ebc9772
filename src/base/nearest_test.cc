#include "base/nearest.h"

#include <gtest/gtest.h>

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

TEST(NearestName, IsTheFirstOfTheLeastDistance) {
  const std::vector<std::string_view> names = {"adagrad", "adam", "sgd", "sgb"};
  EXPECT_EQ(nearest_name("adagard", names), "adagrad");
  EXPECT_EQ(nearest_name("adm", names), "adam");
  EXPECT_EQ(nearest_name("sg", names), "sgd");
  EXPECT_EQ(nearest_name("", names), "sgd");
}

TEST(NearestName, OfNothingIsEmpty) { EXPECT_EQ(nearest_name("adam", {}), ""); }

}  // namespace
}  // namespace embertable
