// The stages of a step of one host, one after the other.
#include <gtest/gtest.h>

#include <string>

#include "embertable/errors.h"
#include "step/backward_run.h"
#include "step/forward_run.h"
#include "step/unique_rows.h"
#include "testing/executor.h"
#include "testing/step/tiny_step.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

/// A forward and a backward on pretended workers, which run even the smallest region.
class Stages {
 public:
  explicit Stages(std::int32_t workers) : executor_(test_seed(), workers), workers_(executor_, 0) {}

  void look_up(TinyStep& tiny) {
    plan_updates(tiny.step);
    forward_.list(tiny.step, workers_.count());
    forward_.run(workers_, simd_level());
  }
  void update(TinyStep& tiny) {
    point_at_gradients(tiny.step);
    backward.prepare(tiny.step, workers_);
    backward.run(workers_);
  }
  void step(TinyStep& tiny) {
    look_up(tiny);
    update(tiny);
  }

  BackwardRun backward{simd_level(), 0};

 private:
  TestExecutor executor_;
  Workers workers_;
  ForwardRun forward_;
};

TEST(Step, SumsRowsThenTheirGradients) {
  for (const std::int32_t workers : {1, 4})
    for (const std::int32_t buckets : {1, 3}) {
      TinyStep tiny(100, buckets);
      tiny.add({{0, 99}, {99}, {}}, {1, 2, 3, 4, 5, 6});
      tiny.add({{50}}, {7, 8});
      Stages stages(workers);
      stages.step(tiny);
      EXPECT_EQ(tiny.out(0), (Floats{990, 992, 990, 991, 0, 0}));
      EXPECT_EQ(tiny.out(1), (Floats{500, 501}));
      EXPECT_EQ(Floats(tiny.rows().begin(), tiny.rows().begin() + 4), (Floats{-1, -1, 10, 11}));
      EXPECT_EQ(Floats(tiny.rows().begin() + 100, tiny.rows().begin() + 102), (Floats{493, 493}));
      EXPECT_EQ(Floats(tiny.rows().end() - 2, tiny.rows().end()), (Floats{986, 985}));
      EXPECT_EQ(stages.backward.unique_rows(0), 3);
      EXPECT_EQ(stages.backward.unique_share(0), 0.75);
    }
}

TEST(Step, TakesSmallTablesAsAWhole) {
  TinyStep tiny(2);
  tiny.add({{1}, {1}}, {1, 2, 3, 4}, true);
  Stages stages(4);
  stages.step(tiny);
  EXPECT_NE(tiny.table().plan.direct, nullptr);
  EXPECT_EQ(tiny.rows(), (Floats{0, 1, 6, 5}));
  EXPECT_EQ(stages.backward.unique_rows(0), 1);
}

TEST(Step, HotRowsGetTheSumsOfOthers) {
  // 6000 samples of rows 7 and i / 100: more than half of one worker's share, and of any bucket.
  TinyStep tiny(100);
  std::vector<std::vector<std::uint32_t>> samples;
  for (std::uint32_t i = 0; i < 6000; ++i) samples.push_back({7, i / 100});
  tiny.add(samples, Floats(6000 * TinyStep::kDim, 1));
  Stages stages(4);
  stages.step(tiny);
  EXPECT_EQ(stages.backward.unique_rows(0), 60);
  for (std::int64_t r = 0; r < 100; ++r) {
    const std::int64_t named = (r == 7 ? 6000 : 0) + (r < 60 ? 100 : 0);
    EXPECT_EQ(tiny.rows()[2 * r], static_cast<float>(10 * r - named)) << "row " << r;
  }
}

TEST(Step, NullGradientsAreZeros) {
  TinyStep tiny(3);
  tiny.add({{1, 2}}, {});
  Stages(2).step(tiny);
  EXPECT_EQ(tiny.rows(), (Floats{0, 1, 10, 11, 20, 21}));
}

TEST(Step, EveryEntryIsAStepWithoutAccumulation) {
  TinyStep tiny(2);
  tiny.add({{1}, {1}}, {1, 2, 3, 4}, true);
  tiny.table().accumulates = false;
  Stages(2).step(tiny);
  EXPECT_EQ(tiny.rows(), (Floats{0, 1, 6, 5}));
}

TEST(Step, RulesThatGiveSumsChangeNoRow) {
  const Optimizer none("none", 0);
  TinyStep tiny(3);
  tiny.add({{2}, {2}}, {1, 2, 3, 4});
  tiny.table().rule = &rule_of(none);
  tiny.table().optimizer = &none;
  Stages stages(2);
  stages.step(tiny);
  EXPECT_EQ(tiny.rows(), (Floats{0, 1, 10, 11, 20, 21}));
  const GradientSums& sums = stages.backward.sums(0);
  ASSERT_EQ(sums.size(), 1);
  EXPECT_EQ(sums.row(0), 2);
  EXPECT_EQ(Floats(sums.sum(0), sums.sum(0) + 2), (Floats{4, 6}));
}

TEST(Step, OneThatIsLookedUpAloneHasNoUpdate) {
  TinyStep tiny(3);
  tiny.add({{2}}, {});
  TestExecutor executor(test_seed(), 2);
  Workers workers(executor, 0);
  ForwardRun forward;
  forward.list(tiny.step, workers.count());
  forward.run(workers, simd_level());
  EXPECT_EQ(tiny.out(0), (Floats{20, 21}));
  EXPECT_EQ(tiny.table().plan.entry, nullptr);
}

TEST(UniqueRows, CountsEachRowOnceAndAnew) {
  TinyStep tiny(100);
  tiny.add({{0, 99}, {99, 99}}, {});
  tiny.add({{64}}, {});
  const std::vector<std::uint64_t> asked = {63, 64};
  tiny.table().route.owed = {{}, asked};
  TestExecutor executor(test_seed(), 2);
  Workers workers(executor, 0);
  UniqueRows unique;
  for (int again = 0; again < 2; ++again)
    unique.count(tiny.step, workers, [](std::int64_t table, std::int64_t rows) {
      EXPECT_EQ(table, 0);
      EXPECT_EQ(rows, 4);
    });
}

TEST(CheckUpdateSize, NamesTableAndCounts) {
  LookupPlan plan;
  plan.outputs = plan.row.size = std::int64_t{1} << 32;
  TinyStep tiny(3);
  tiny.table().features.push_back({.plan = &plan});
  std::string refusal;
  try {
    plan_updates(tiny.step);
  } catch (const ValueError& error) {
    refusal = error.what();
  }
  EXPECT_EQ(refusal,
            "table 'tiny': a step may have at most 2^32 - 1 entries and output rows, got "
            "4294967296 and 4294967296");
}

TEST(Workers, RunSmallRegionsOnTheCallersThread) {
  TestExecutor executor(test_seed(), 8);
  Workers workers(executor, 100);
  std::vector<std::int64_t> order;
  EXPECT_EQ(workers.run(3, 99, [&](const WorkItem& item) { order.push_back(item.index); }), 1);
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(workers.run(0, 0, [](const WorkItem&) { FAIL(); }), 0);
}

TEST(Workers, CountThoseThatRanAnItem) {
  TestExecutor executor(test_seed(), 8);
  Workers workers(executor, 0);
  std::vector<bool> worked(8);
  const std::int32_t count =
      workers.run(5, 0, [&](const WorkItem& item) { worked[item.worker] = true; });
  EXPECT_EQ(count, std::count(worked.begin(), worked.end(), true));
}

}  // namespace
}  // namespace embertable
