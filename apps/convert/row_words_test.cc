#include "apps/convert/row_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable::jobs {
namespace {

using ::testing::ElementsAre;

/// Returns what a file says where rows have these words and are told apart by their numbers.
std::vector<std::string> written(const std::vector<std::string>& words) {
  const RowWords distinct(
      std::ssize(words), [&](std::int64_t row) { return words[row]; },
      [](std::int64_t row) { return std::to_string(row); });
  std::vector<std::string> all;
  for (std::int64_t row = 0; row < std::ssize(words); ++row) all.push_back(distinct(row));
  return all;
}

TEST(RowWords, StayWhereNoOtherRowHasThem) {
  EXPECT_THAT(written({"Emma", "emma", "Persuasion"}), ElementsAre("Emma", "emma", "Persuasion"));
  EXPECT_THAT(written({}), ElementsAre());
}

TEST(RowWords, AreToldApartWhereRowsShareOne) {
  EXPECT_THAT(written({"Emma", "Hamlet", "Emma", "Ulysses", "Emma"}),
              ElementsAre("Emma_0", "Hamlet", "Emma_2", "Ulysses", "Emma_4"));
}

TEST(RowWords, AreRefusedWhereThatGivesAnothersWord) {
  EXPECT_EQ(
      embertable::refusal<ValueError>([] {
        written({"Emma", "Emma_0", "Emma"});
      }),
      "a word must name one row, got 'Emma_0' for row 0 and another one; the label 'row' takes "
      "numbers");
}

}  // namespace
}  // namespace embertable::jobs
