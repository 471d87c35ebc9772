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

TEST(IsMisspelt, IfAtMostTwoLettersAndHalfOfThemDiffer) {
  EXPECT_TRUE(is_misspelt("adagrda", "adagrad"));
  EXPECT_TRUE(is_misspelt("ADAGRDA", "adagrad"));
  EXPECT_TRUE(is_misspelt("usr", "user"));
  EXPECT_TRUE(is_misspelt("x1", "x2"));
  EXPECT_FALSE(is_misspelt("threads", "thread_no"));
  EXPECT_FALSE(is_misspelt("a", "n"));
  EXPECT_FALSE(is_misspelt("", "n"));
  EXPECT_FALSE(is_misspelt("to", "in"));
  EXPECT_FALSE(is_misspelt("adadgard", "adagrad"));  // 3
}

TEST(DidYouMean, NamesTheFirstOfTheLeastDistance) {
  const std::vector<std::string> names = {"adagrad", "adam", "sgd", "sgb"};
  EXPECT_EQ(did_you_mean("adagard", names), "; the nearest is 'adagrad'");
  EXPECT_EQ(did_you_mean("adm", names), "; the nearest is 'adam'");
  EXPECT_EQ(did_you_mean("sg", names), "; the nearest is 'sgd'");
}

TEST(DidYouMean, NamesOnlyWhatMayBeMeant) {
  const std::vector<std::string> keys = {"header", "bucket_bytes", "field_separator", "dim"};
  EXPECT_EQ(did_you_mean("", keys), "");
  EXPECT_EQ(did_you_mean("threads", keys), "");
  EXPECT_EQ(did_you_mean("eps", keys), "");
  EXPECT_EQ(did_you_mean("DIMS", keys), "; the nearest is 'dim'");
}

TEST(DidYouMean, ANameMayHaveTheWordsOfAnother) {
  const std::vector<std::string> keys = {"header", "field_separator", "separator_of_keys"};
  EXPECT_EQ(did_you_mean("seperator", keys), "; the nearest is 'field_separator'");
  EXPECT_EQ(did_you_mean("keys_separator", keys), "");
  const std::vector<std::string> rules = {"adagrad", "fbgemm.lars_sgd", "fbgemm.rowwise_adagrad",
                                          "rowwise_adagrad"};
  EXPECT_EQ(did_you_mean("fbgemm.EXACT_ROWWISE_ADAGRAD", rules),
            "; the nearest is 'fbgemm.rowwise_adagrad'");
  EXPECT_EQ(did_you_mean("SparseAdagrad_", rules), "");
  EXPECT_EQ(did_you_mean("_", rules), "");
}

TEST(DidYouMean, TakesABeginningForAWord) {
  const std::vector<std::string> names = {"dim", "vocabulary_size", "initial_accumulator_value"};
  EXPECT_EQ(did_you_mean("vocab", names), "; the nearest is 'vocabulary_size'");
  EXPECT_EQ(did_you_mean("initial_acc", names), "; the nearest is 'initial_accumulator_value'");
  EXPECT_EQ(did_you_mean("dimension", names), "; the nearest is 'dim'");
  EXPECT_EQ(did_you_mean("vo", names), "");
}

TEST(DidYouMean, SaysNothingIfNothingIsKnown) {
  EXPECT_EQ(did_you_mean("adam", std::vector<std::string>()), "");
}

TEST(NameHint, ListsAFewNamesOfWhichNoneIsMeant) {
  const std::vector<std::string_view> names = {"rate", "momentum"};
  EXPECT_EQ(name_hint("rates", names), "; the nearest is 'rate'");
  EXPECT_EQ(name_hint("eps", names), "; there are 'rate', 'momentum'");
  EXPECT_EQ(name_hint("eps", std::span(names).first(1)), "; there is 'rate'");
  EXPECT_EQ(name_hint("eps", std::span(names).first(0)), "");
  EXPECT_EQ(name_hint("eps", std::vector<std::string_view>(17, "rate")), "");
}

TEST(MustBeOneOf, ListsWhatIsKnownAndTheNearest) {
  EXPECT_EQ(must_be_one_of(std::vector<std::string>{"rows", "columns"}, "row"),
            "must be one of rows, columns, got \"row\"; the nearest is 'rows'");
}

}  // namespace
}  // namespace embertable
