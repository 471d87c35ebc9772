#include "apps/selftest/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/selftest/references.h"
#include "kernels/level.h"

namespace embertable::selftest {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<GoldenVector> vectors_of(const std::string& rule) {
  std::vector<GoldenVector> found = published_vectors();
  std::erase_if(found, [&](const GoldenVector& vector) { return vector.rule != rule; });
  return found;
}

class EveryRule : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

TEST_P(EveryRule, HoldsAtEveryLevel) {
  const Line line = check_rule(GetParam(), published_vectors());
  EXPECT_THAT(line.failures, IsEmpty());
  EXPECT_EQ(line.digests.size(), usable_levels().size());
  EXPECT_THAT(line.digests, Each(line.digests.front()));
}

TEST(SelfTest, EveryVectorSaysWhereItIsFrom) {
  for (const GoldenVector& vector : published_vectors())
    EXPECT_FALSE(vector.source.empty()) << vector.id;
}

TEST(SelfTest, CombinersHoldAtEveryLevel) {
  for (const std::string& combiner : combiners())
    EXPECT_THAT(check_combiner(combiner).failures, IsEmpty());
}

TEST(SelfTest, NamesTheNumberOfAVectorThatIsNotMet) {
  std::vector<GoldenVector> vectors = vectors_of("sgd");
  vectors[0].steps[0].expected[0][1] += 0.125;
  const Line line = check_rule("sgd", vectors);
  EXPECT_FALSE(line.ok());
  EXPECT_EQ(line.failures.size(), usable_levels().size());
  EXPECT_THAT(line.failures[0],
              AllOf(HasSubstr("sgd, vector " + vectors[0].id + " at scalar, step 1"),
                    HasSubstr("parameters[1] is"), HasSubstr("must be")));
}

TEST(SelfTest, NamesBitsThatAreNotMet) {
  std::vector<GoldenVector> vectors = vectors_of("rowwise_adagrad");
  ASSERT_THAT(vectors[0].steps[0].bits, Not(IsEmpty()));
  vectors[0].steps[0].bits[0][7] ^= 1;  // the last digit: one unit in the last place
  const Line line = check_rule("rowwise_adagrad", vectors);
  ASSERT_FALSE(line.ok());
  EXPECT_THAT(line.failures[0], HasSubstr("parameters[0] has the bits"));
}

TEST(SelfTest, ARuleWithoutVectorFails) {
  EXPECT_THAT(check_rule("sgd", {}).failures,
              testing::ElementsAre("sgd: there is no published vector"));
}

TEST(SelfTest, AReportFailsWithOneOfItsLines) {
  Report report{.rules = {{.name = "a"}}, .combiners = {{.name = "b"}}};
  EXPECT_TRUE(report.ok());
  report.combiners[0].failures = {"b, dim 1"};
  EXPECT_FALSE(report.ok());
}

}  // namespace
}  // namespace embertable::selftest
