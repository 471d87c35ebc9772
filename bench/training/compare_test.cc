#include "bench/training/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace embertable::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Line {
  std::string workload = "W1";
  double step = 50;
  int threads = 2;
  long long rows = 1'000'000;
  int batches = 96;
  std::string machine = "here";
  double limit = 100;
  double other_load = 0;
};

std::string json(const Line& line) {
  return fmt::format(
      R"({{"workload":"{}","threads":{},"rows":{},"batches":{},"machine":"{}","other_load":{},)"
      R"("step":{},"step_limit":{},"step_limit_all_bytes":80}})"
      "\n",
      line.workload, line.threads, line.rows, line.batches, line.machine, line.other_load,
      line.step, line.limit);
}

RunComparison compared(const std::string& before, const std::string& now) {
  return compare_runs(read_run(before, "before"), read_run(now, "now"));
}

std::string compare_refusal(const std::string& text) {
  try {
    read_run(text, "F");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(CompareRuns, LeavesOutRowsOfAnotherType) {
  std::string half = json({});
  half.insert(1, R"("row_type":"bfloat16",)");
  const RunComparison found = compared(json({}), half);
  EXPECT_EQ(found.compared, 0);
  EXPECT_THAT(found.lines, ElementsAre("W1: not compared: rows of bfloat16, were of float32"));
  EXPECT_EQ(compared(half, half).compared, 1);
}

TEST(CompareRuns, LeavesOutStepsWithOtherWorkBetween) {
  std::string alone = json({});
  alone.insert(1, R"("steps_alone":true,)");
  const RunComparison found = compared(json({}), alone);
  EXPECT_EQ(found.compared, 0);
  EXPECT_THAT(found.lines,
              ElementsAre("W1: not compared: steps alone, were with other work between"));
  EXPECT_EQ(compared(alone, alone).compared, 1);
}

TEST(CompareRuns, LeavesAloneWhatDidNotMove) {
  const RunComparison found = compared(json({}) + json({.workload = "W2"}),
                                       json({.step = 54}) + json({.workload = "W2", .step = 46}));
  EXPECT_THAT(found.slower, IsEmpty());
  EXPECT_THAT(found.faster, IsEmpty());
  EXPECT_EQ(found.compared, 2);
  EXPECT_THAT(found.lines,
              ElementsAre("W1, 2 threads: of the limit 0.540, was 0.500 (+8 %); of all bytes "
                          "0.675, was 0.625 (+8 %)",
                          "W2, 2 threads: of the limit 0.460, was 0.500 (-8 %); of all bytes "
                          "0.575, was 0.625 (-8 %)"));
}

TEST(CompareRuns, NamesWhatMovedByMoreThanATenth) {
  const RunComparison found = compared(
      json({}) + json({.workload = "W2"}) + json({.workload = "W3"}),
      json({.step = 55.5}) + json({.workload = "W2", .step = 44.5}) + json({.workload = "W3"}));
  EXPECT_THAT(found.faster, ElementsAre("W1"));
  EXPECT_THAT(found.slower, ElementsAre("W2"));
  EXPECT_THAT(found.lines[0], HasSubstr("(+11 %): faster"));
  EXPECT_THAT(found.lines[1], HasSubstr("(-11 %): SLOWER"));
}

TEST(CompareRuns, HoldsRatiosAndNotRates) {
  const RunComparison found = compared(
      json({.step = 50, .limit = 100}),
      R"({"workload":"W1","threads":2,"rows":1000000,"batches":96,"step":5,"step_limit":10,)"
      R"("step_limit_all_bytes":8})");
  EXPECT_THAT(found.lines, ElementsAre("W1, 2 threads: of the limit 0.500, was 0.500 (+0 %); of "
                                       "all bytes 0.625, was 0.625 (+0 %)"));
}

TEST(CompareRuns, SaysWhereOneLimitAloneWasMeasuredOtherwise) {
  const RunComparison found = compared(json({}), json({.limit = 70}));
  EXPECT_THAT(found.slower, IsEmpty());
  EXPECT_THAT(found.faster, IsEmpty());
  EXPECT_THAT(found.lines, ElementsAre(HasSubstr(": one ratio alone")));
}

TEST(CompareRuns, SaysWhichWorkloadsOneRunAloneHas) {
  const RunComparison found = compared(json({.workload = "W1"}) + json({.workload = "W5"}),
                                       json({.workload = "W4"}) + json({.workload = "W5"}));
  EXPECT_EQ(found.compared, 1);
  EXPECT_THAT(found.lines, ElementsAre("W4: not in the stored run", HasSubstr("W5, 2 threads"),
                                       "W1: in the stored run alone"));
}

TEST(CompareRuns, DoesNotCompareAnotherLoad) {
  const RunComparison found =
      compared(json({}), json({.step = 5, .threads = 1}) + json({.step = 5, .rows = 1000}) +
                             json({.step = 5, .threads = 4, .batches = 2}));
  EXPECT_EQ(found.compared, 0);
  EXPECT_THAT(found.slower, IsEmpty());
  EXPECT_THAT(found.lines, ElementsAre("W1: not compared: 1 threads, were 2",
                                       "W1: not compared: 1000 rows a table, were 1000000",
                                       "W1: not compared: 4 threads, were 2; 2 batches, were 96"));
}

TEST(CompareRuns, FindsTheSameLoadAmongOthersOfItsName) {
  const RunComparison found =
      compared(json({.threads = 1}) + json({}) + json({.rows = 7}), json({}));
  EXPECT_THAT(found.lines, ElementsAre(HasSubstr("W1, 2 threads: of the limit 0.500")));
}

TEST(CompareRuns, SaysWhatElseMovesRatios) {
  const RunComparison found =
      compared(json({.machine = "there"}) + json({.workload = "W2", .machine = "there"}),
               json({.other_load = 0.2}) + json({.workload = "W2", .other_load = 0.1}));
  EXPECT_EQ(found.compared, 2);
  EXPECT_EQ(found.lines.size(), 4U);
  EXPECT_EQ(found.lines[2], "another machine: 'here', was 'there'; caches alone move ratios");
  EXPECT_EQ(found.lines[3], "other processes took up to 20 % of the machine in this run");
}

TEST(CompareRuns, SaysWhereAFileIsNoRun) {
  EXPECT_EQ(compare_refusal(""), "'F' holds no run");
  EXPECT_THAT(compare_refusal(json({}) + "\n[1/2] Building\n"),
              HasSubstr("'F', line 3: there must be a workload's object as --json prints it: "));
  EXPECT_THAT(compare_refusal("{}"), HasSubstr("'step' not found"));
  EXPECT_THAT(compare_refusal(json({.step = 0})), HasSubstr("'step' must be above 0, got 0"));
  EXPECT_THAT(compare_refusal(json({.limit = -1})),
              HasSubstr("'step_limit' must be above 0, got -1"));
}

}  // namespace
}  // namespace embertable::bench
