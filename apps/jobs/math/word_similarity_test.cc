#include "apps/jobs/math/word_similarity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "apps/jobs/text/broken_record.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using Numbers = std::vector<double>;

// Ranks 0 1 2 3 and 1 0 3 2: 1 - 6 * 4 / (4 * 15) = 0.6.
TEST(Spearman, ComparesRanks) {
  EXPECT_DOUBLE_EQ(spearman(Numbers{1, 2, 30, 400}, Numbers{2, 1, 9, 8}), 0.6);
  EXPECT_DOUBLE_EQ(spearman(Numbers{1, 2, 3}, Numbers{1, 10, 100}), 1);
  EXPECT_DOUBLE_EQ(spearman(Numbers{1, 2, 3}, Numbers{3, 2, 1}), -1);
}

// Ranks 0.5 0.5 2 and 0 1 2: sums 1.5, 1.5 and 2.
TEST(Spearman, EqualValuesShareTheirRanks) {
  EXPECT_DOUBLE_EQ(spearman(Numbers{7, 7, 8}, Numbers{1, 2, 3}), 1.5 / std::sqrt(1.5 * 2));
}

TEST(Spearman, OfOneValueIsZero) {
  EXPECT_EQ(spearman(Numbers{}, Numbers{}), 0);
  EXPECT_EQ(spearman(Numbers{1}, Numbers{2}), 0);
  EXPECT_EQ(spearman(Numbers{4, 4, 4}, Numbers{1, 2, 3}), 0);
}

TEST(Spearman, OfNaNIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, nan, 3}, Numbers{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Numbers{1, 2, 3}, Numbers{nan, nan, nan})));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(spearman(Numbers{-inf, 2, inf}, Numbers{1, 2, 3}), 1);
}

TEST(Cosine, OfRows) {
  const std::vector<float> a = {3, 4}, b = {4, 3}, zero = {0, 0};
  EXPECT_DOUBLE_EQ(cosine(a.data(), b.data(), 2), 24.0 / 25);
  EXPECT_EQ(cosine(a.data(), zero.data(), 2), 0);
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& bad : {std::vector<float>{1, inf}, {1, inf - inf}})
    EXPECT_TRUE(std::isnan(cosine(a.data(), bad.data(), 2)));
}

TEST(WordPairs, AreThoseOfKnownWords) {
  const TemporaryFiles files;
  const std::string path = files.write(
      "pairs.csv", "one,other,score\ntiger,Cat,7.35\ncat,dog,1\nit\xE2\x80\x99s,cat,2\n");
  IdMapBuilder builder(KeyKind::kString);
  for (const char* word : {"cat", "tiger", "it's"}) builder.add(std::string_view(word));
  const std::vector<WordPair> pairs =
      read_word_pairs(path, builder.build(), TokenRule::kWords).pairs;
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].first, 1);
  EXPECT_EQ(pairs[0].second, 0);
  EXPECT_EQ(pairs[0].score, 7.35);
  EXPECT_EQ(pairs[1].first, 2);
}

TEST(WordPairs, AreSpeltAsTheTextIs) {
  const TemporaryFiles files;
  const std::string path = files.write("pairs.csv", "one,other,score\nCat,Dog,7\ncat,Dog,1\n");
  IdMapBuilder builder(KeyKind::kString);
  for (const char* word : {"cat", "Dog"}) builder.add(std::string_view(word));
  const std::vector<WordPair> pairs =
      read_word_pairs(path, builder.build(), TokenRule::kBlanks).pairs;
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].score, 1);
}

TEST(WordPairs, BrokenRecordsCanBeLeftOut) {
  const TemporaryFiles files;
  const std::string path = files.write("pairs.csv", "one,other,score\na,b,nan\na,b\nb,a,2\n");
  IdMapBuilder builder(KeyKind::kString);
  for (const char* word : {"a", "b"}) builder.add(std::string_view(word));
  const WordPairs read = read_word_pairs(path, builder.build(), TokenRule::kWords, 2);
  EXPECT_EQ(read.left_out.total(), 2);
  ASSERT_EQ(read.pairs.size(), 1u);
  EXPECT_EQ(read.pairs[0].score, 2);
  EXPECT_EQ(refusal<BrokenRecord>(
                files.path(), [&] { read_word_pairs(path, builder.build(), TokenRule::kWords); }),
            "pairs.csv:2:5: 'score' must be a number, got 'nan'");
}

}  // namespace
}  // namespace embertable::jobs
