// The stages of a step of one host, one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "embertable/errors.h"
#include "step/backward.h"
#include "step/forward.h"
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
    forward_.run(tiny.step, workers_, simd_level());
  }
  void update(TinyStep& tiny) {
    select_zeros(tiny.step, workers_);
    point_at_gradients(tiny.step);
    backward.prepare(tiny.step, workers_);
    backward.run(workers_);
  }
  void step(TinyStep& tiny) {
    look_up(tiny);
    update(tiny);
  }

  std::vector<NamedShares> shares{1};
  BackwardRun backward{simd_level(), 1, shares};

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
      EXPECT_EQ(stages.shares[0].unique, 0.75);
    }
}

/// Has the last of two workers run all items, and looks at what is done when half of them are.
class LastWorkerAlone final : public Executor {
 public:
  explicit LastWorkerAlone(std::function<void()> at_half) : at_half_(std::move(at_half)) {}
  std::int32_t workers() const noexcept override { return 2; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    for (std::int64_t i = 0; i < items; ++i) {
      if (i == items / 2) at_half_();
      body({.index = i, .next = -1, .worker = 1});
    }
  }

 private:
  std::function<void()> at_half_;
};

TEST(Step, DealsItemsToWorkersByTheirTables) {
  // Two equal tables of two buckets each: the last worker's are those of the second one.
  for (const bool keeps : {true, false}) {
    const Floats gradient(200, 1);
    std::vector<std::vector<std::uint32_t>> samples(100);
    for (std::uint32_t i = 0; i < 100; ++i) samples[i] = {i};
    TinyStep tiny(100, 2), other(100, 2);
    for (TinyStep* of : {&tiny, &other}) of->add(samples, gradient);
    tiny.step.tables.push_back(other.table());
    divide_among_tables(tiny.step);
    tiny.step.keeps_tables = keeps;
    std::vector<bool> done;
    const Floats rows = tiny.rows(), none(200);
    LastWorkerAlone executor([&] {
      const bool looks_up = tiny.rows() == rows && other.rows() == rows;
      if (done.size() < 2 && !looks_up) return;
      done.push_back(looks_up ? tiny.out(0) != none : tiny.rows() != rows);
      done.push_back(looks_up ? other.out(0) != none : other.rows() != rows);
    });
    Workers workers(executor, 0);
    ForwardRun forward;
    BackwardRun backward(simd_level(), 2);
    plan_updates(tiny.step);
    forward.run(tiny.step, workers, simd_level());
    EXPECT_EQ(tiny.out(0), rows);
    EXPECT_EQ(other.out(0), rows);
    point_at_gradients(tiny.step);
    backward.prepare(tiny.step, workers);
    backward.run(workers);
    Floats stepped = rows;
    for (float& value : stepped) value -= 1;
    EXPECT_EQ(tiny.rows(), stepped);
    EXPECT_EQ(other.rows(), stepped);
    ASSERT_EQ(done.size(), 4);
    EXPECT_TRUE(done[1] && done[3]);
    EXPECT_EQ(done[0], !keeps);
    EXPECT_EQ(done[2], !keeps);
  }
}

TEST(Step, IsDividedByTheFloatsThatLookupsMove) {
  TinyStep tiny(100);
  tiny.add({{1, 2, 3}, {4, 5}}, {});  // five rows and two output rows
  tiny.add({{}, {}, {}}, {});
  divide_among_tables(tiny.step);
  EXPECT_EQ(tiny.step.floats, 10 * TinyStep::kDim);
  const PartOfStep &first = tiny.table().features[0].part, &second = tiny.table().features[1].part;
  EXPECT_EQ(first.begin, 0);
  EXPECT_DOUBLE_EQ(first.end, 0.7);
  EXPECT_EQ(second.begin, first.end);
  EXPECT_DOUBLE_EQ(second.end, 1);
  EXPECT_EQ(tiny.table().part.begin, 0);
  EXPECT_EQ(tiny.table().part.end, second.end);
  EXPECT_DOUBLE_EQ(first.at(0, 1, 2), 0.175);
  EXPECT_DOUBLE_EQ(second.at(0, 3, 3), 0.85);
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

TEST(Step, GradientsOfZeroDenominatorsAreZerosWhateverTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Floats gradient = {kInfinity, std::nanf(""), 1, 2};
  for (const bool accumulates : {true, false}) {
    TinyStep tiny(3);
    tiny.add({{1, 2}, {2}}, gradient);
    tiny.divide_by({-0.0f, 0.5f});
    tiny.table().accumulates = accumulates;
    Stages(2).step(tiny);
    EXPECT_EQ(tiny.out(0), (Floats{0, 0, 40, 42}));
    EXPECT_EQ(tiny.rows(), (Floats{0, 1, 10, 11, 18, 17}));
  }
}

TEST(Step, GradientsThatAreMultipliedByAWeightOfZeroAreNot) {
  TinyStep tiny(2);
  tiny.add({{1}}, {std::numeric_limits<float>::infinity(), 1});
  tiny.divide_by({std::numeric_limits<float>::infinity()});
  Stages(2).step(tiny);
  EXPECT_TRUE(std::isnan(tiny.rows()[2]));
  EXPECT_EQ(tiny.rows()[3], 11);
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
  tiny.table().step_by(none, simd_level());
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
  ForwardRun().run(tiny.step, workers, simd_level());
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
    unique.count(std::span(&tiny.step, 1), 0, workers, [](std::int64_t table, std::int64_t rows) {
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

TEST(CheckUpdateSize, LimitsTheEntriesOfABucket) {
  const auto refusal = [](const TinyStep& tiny, std::int64_t most) -> std::string {
    try {
      check_update_size(tiny.step.tables.front(), 3, most);
    } catch (const ValueError& error) {
      return error.what();
    }
    return "";
  };
  TinyStep one(100);
  one.add({{0, 99}, {99}, {}}, {});
  one.add({{50, 50}}, {});
  EXPECT_EQ(refusal(one, 5), "");
  EXPECT_EQ(
      refusal(one, 4),
      "table 'tiny': a step may have at most 4 entries for rows that are updated together, got "
      "5");

  // Rows 0 and 1 share a bucket; rows 64 to 79 are in another one of 16.
  TinyStep several(100, 16);
  several.add({{0, 1, 64}, {1, 64}, {0, 1}}, {});
  ASSERT_NE(bucket_of(0u, 16), bucket_of(64u, 16));
  EXPECT_EQ(refusal(several, 5), "");
  EXPECT_EQ(
      refusal(several, 4),
      "table 'tiny': a step may have at most 4 entries for rows that are updated together, got "
      "5");
  // Another host's three cores name row 1 too.
  const std::vector<std::uint64_t> asked = {1};
  several.table().route.owed = {{}, asked};
  EXPECT_EQ(refusal(several, 8), "");
  EXPECT_NE(refusal(several, 7), "");
}

TEST(CheckUpdateSize, LimitsTheEntriesOfACoreForRowsOfOthers) {
  constexpr std::uint32_t kReceived = kReceivedBit<std::uint32_t>;
  TinyStep tiny(100);
  tiny.add({{kReceived, kReceived + 1, kReceived + 2}, {0}}, {}, false, 1);
  tiny.add({{kReceived + 40}}, {}, false, 2);
  EXPECT_NO_THROW(check_update_size(tiny.table(), 1, 3));
  EXPECT_THROW(check_update_size(tiny.table(), 1, 2), ValueError);
}

/// Scratch of an update of 2^18 entries, two thirds of which name one row, by workers that only
/// pretend to be several.
std::int64_t scratch_bytes(std::int32_t workers) {
  constexpr std::uint32_t kManyRows = 1 << 12;
  TinyStep tiny(kManyRows, 4);
  std::vector<std::vector<std::uint32_t>> samples(1 << 18, {7});
  for (std::uint32_t i = 0; i < samples.size(); i += 3) samples[i] = {i / 3 * 7919 % kManyRows};
  tiny.add(samples, Floats(samples.size() * TinyStep::kDim, 1));
  Stages stages(workers);
  stages.step(tiny);
  return stages.backward.scratch_bytes();
}

TEST(Scratch, IsBoundedByTheStepAndNotByWorkersTimesItsHottestBucket) {
  constexpr std::int64_t kEntries = 1 << 18, kMiB = 1 << 20;
  const std::int64_t one = scratch_bytes(1);
  EXPECT_LE(one, 100 * kEntries);
  // 200 bytes for each entry, and 2 MiB with some pages of sums for each worker. Two thirds of the
  // entries in the scratch of each of 64 workers would be 800 MB.
  for (const std::int32_t workers : {2, 8, 64})
    EXPECT_LE(scratch_bytes(workers), 200 * kEntries + workers * (2 * kMiB + 16384)) << workers;
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
