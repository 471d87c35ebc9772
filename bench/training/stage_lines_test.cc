#include "bench/training/stage_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace embertable::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr StageShape kShape = {.dim = 16, .outputs = 0.5, .named = 0.25};
constexpr StageTimes kWithRule = {.enqueue = 1,
                                  .forward = 10,
                                  .backward = 20,
                                  .look_up = 8,
                                  .scatter = 1,
                                  .group = 6,
                                  .sum_and_update = 12};

StageTimes sums(double ns) {
  StageTimes times = kWithRule;
  times.sum_and_update = ns;
  return times;
}

std::vector<double> ns_of(const StageTable& table) {
  std::vector<double> ns;
  for (const StageLine& line : table.lines) ns.push_back(line.ns);
  return ns;
}

TEST(DivideStep, AddsUpToTheStep) {
  const StageTable table = divide_step(kShape, kWithRule, sums(9));
  EXPECT_THAT(ns_of(table), ElementsAre(1, 8, 1, 6, 9, 3, 3));
  EXPECT_EQ(table.step_ns, 31);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(DivideStep, CountsBytesByHand) {
  const StageTable table = divide_step(kShape, kWithRule, sums(9));
  std::vector<double> bytes;
  for (const StageLine& line : table.lines) bytes.push_back(line.bytes);
  EXPECT_THAT(bytes, ElementsAre(8 + 4 + 2 * (4 + 4), 4 + 4 + 64 + 64, 4 + 4 + 16, 8 + 32, 68,
                                 2 * 68 * 0.25, 0));
}

TEST(DivideStep, CountsBytesOfRowsAsTheyAreStored) {
  StageShape half = kShape;
  half.stored_bytes = 2;
  half.grouping_fetches = false;
  const StageTable table = divide_step(half, kWithRule, sums(9));
  std::vector<double> bytes;
  for (const StageLine& line : table.lines) bytes.push_back(line.bytes);
  EXPECT_THAT(bytes, ElementsAre(8 + 4 + 2 * (4 + 4), 4 + 4 + 32 + 64, 4 + 4 + 16, 8, 68,
                                 2 * 36 * 0.25, 0));
}

TEST(DivideStep, PrintsNoNegativeUpdate) {
  const StageTable table = divide_step(kShape, kWithRule, sums(12.5));
  EXPECT_THAT(ns_of(table), ElementsAre(1, 8, 1, 6, 12, 0, 3));
  EXPECT_THAT(table.notes, ElementsAre("update: less than this run can tell; sums took 12.00 ns "
                                       "with the rule and 12.50 ns without"));
}

TEST(DivideStep, PrintsNoNegativeWaiting) {
  const StageTable table = divide_step(kShape, sums(15.5), sums(9));
  EXPECT_THAT(ns_of(table), ElementsAre(1, 8, 1, 6, 9, 6.5, 0));
  EXPECT_THAT(table.notes,
              ElementsAre("waiting, lists: less than this run can tell; the stages took 0.50 ns "
                          "more than forward and backward"));
}

}  // namespace
}  // namespace embertable::bench
