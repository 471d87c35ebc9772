#include "step/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "testing/built_plans.h"
#include "testing/executor.h"

namespace embertable {
namespace {

/// A table whose row r is {r, r / 4, r, r / 4, ...}.
struct LookedUpTable {
  LookedUpTable(std::int64_t num_rows, std::int32_t dim) : floats(num_rows * dim) {
    for (std::int64_t i = 0; i < floats.size(); ++i)
      floats[i] = static_cast<float>(i / dim) * ((i % dim) % 2 == 0 ? 1.0f : 0.25f);
    rows = {.row = floats.data(), .stride = dim, .dim = dim, .rows = num_rows};
  }
  GuardedFloats floats;
  RowBlock rows;
};

/// Looked up in items of `cut` output rows.
std::vector<float> run(SimdLevel level, const TestFeature& feature, bool wide,
                       std::int64_t cut = 2) {
  const BuiltPlans plans({feature}, 2, 1, wide);
  const LookedUpTable table(10, 2);
  LookupPlan plan = plans.lookups[0];
  const std::int64_t outputs = plan.outputs;
  GuardedFloats out(outputs * 2, -1);
  TableRun run;
  run.rows = table.rows;
  const FeatureRun looked_up = {.plan = &plan, .out = out.data()};
  std::vector<LookupItem> items;
  for (std::int64_t i = 0; i < outputs; i += cut)
    items.push_back({&run, &looked_up, i, std::min(i + cut, outputs)});
  for (std::size_t i = 0; i < items.size(); ++i)
    look_up(items[i], i + 1 < items.size() ? &items[i + 1] : nullptr, level);
  return {out.begin(), out.end()};
}

TEST(LookUp, SumsWeighsAndDivides) {
  for (const SimdLevel level : usable_levels())
    for (const bool wide : {false, true}) {
      const TestFeature sum = {.samples = {{4, 8}, {}, {1}}};
      EXPECT_EQ(run(level, sum, wide), (std::vector<float>{12, 3, 0, 0, 1, 0.25f}));
      TestFeature mean = sum;
      mean.weight = {1, 3, 2};
      mean.denominator = {4, 0, 0};
      EXPECT_EQ(run(level, mean, wide), (std::vector<float>{7, 1.75f, 0, 0, 0, 0}));
      const TestFeature copy = {.samples = {{9}, {0}, {5}}, .one_hot = true};
      EXPECT_EQ(run(level, copy, wide), (std::vector<float>{9, 2.25f, 0, 0, 5, 1.25f}));
    }
}

TEST(LookUp, NeverShowsHowOutputsAreCut) {
  TestFeature feature;
  std::mt19937 random(test_seed(3));
  for (int i = 0; i < 50; ++i) feature.samples.emplace_back(random() % 4, random() % 10);
  for (const SimdLevel level : usable_levels())
    for (const std::int64_t cut : {1, 7, 49})
      EXPECT_EQ(run(level, feature, false, cut), run(level, feature, false, 50));
}

TEST(LookUp, TakesRowsOfOtherHostsFromWhatWasReceived) {
  const LookedUpTable table(10, 2);
  std::vector<float> received = {100, 200, 300, 400};
  std::vector<std::uint32_t> row = {3, kReceivedBit<std::uint32_t> | 1,
                                    kReceivedBit<std::uint32_t>};
  std::vector<std::int64_t> split = {0, 2, 3};
  LookupPlan plan;
  plan.outputs = 2;
  plan.row = {row.data(), 3, false};
  plan.split = split;
  for (const SimdLevel level : usable_levels()) {
    std::vector<float> out(4);
    TableRun run;
    run.rows = table.rows;
    run.route.received = std::as_bytes(std::span(received));
    const FeatureRun feature = {.plan = &plan, .out = out.data()};
    look_up({.table = &run, .feature = &feature, .last = 2}, nullptr, level);
    EXPECT_EQ(out, (std::vector<float>{303, 400.75f, 100, 200}));
  }
}

TEST(LookUp, WidensRowsOfBfloat16WhereverTheyAre) {
  const std::vector<std::uint16_t> halves = {0x3f80, 0xc000, 0x4040, 0x0001};  // 1, -2; 3, 2^-133
  const std::vector<std::uint16_t> received = {0x7f80, 0x3f00};                // infinity, 0.5
  std::vector<std::uint32_t> row = {1, kReceivedBit<std::uint32_t> | 0, 0};
  LookupPlan plan;
  plan.outputs = 3;
  plan.row = {row.data(), 3, false};
  for (const SimdLevel level : usable_levels()) {
    std::vector<float> out(6);
    TableRun run;
    run.rows.type = RowType::kBfloat16;
    run.rows.half = const_cast<std::uint16_t*>(halves.data());
    run.rows.stride = run.rows.dim = run.rows.rows = 2;
    run.route.received = std::as_bytes(std::span(received));
    const FeatureRun feature = {.plan = &plan, .out = out.data()};
    look_up({.table = &run, .feature = &feature, .last = 3}, nullptr, level);
    EXPECT_EQ(out, (std::vector<float>{3, 0x1p-133f, INFINITY, 0.5f, 1, -2}));
  }
}

/// Entries of an update plan as (bucket, row, out, gain).
struct Scattered {
  std::int64_t bucket;
  std::uint64_t row;
  std::uint32_t out;
  float gain;
  bool operator==(const Scattered&) const = default;
};

std::vector<Scattered> scattered(const UpdatePlan& update) {
  std::vector<Scattered> all;
  for (std::int64_t b = 0; b < update.buckets(); ++b)
    for (std::int64_t k = update.bucket[b]; k < update.bucket[b + 1]; ++k) {
      const float gain = update.gain == nullptr ? 1.0f : update.gain[k];
      if (update.wide) {
        const auto e = static_cast<const UpdateEntry<std::uint64_t>*>(update.entry)[k];
        all.push_back({b, e.row, e.out, gain});
      } else {
        const auto e = static_cast<const UpdateEntry<std::uint32_t>*>(update.entry)[k];
        all.push_back({b, e.row, e.out, gain});
      }
    }
  return all;
}

TEST(Scatter, GivesEntriesTheirGain) {
  const TestFeature mean = {
      .samples = {{1, 2}, {}, {3}}, .weight = {1, 3, 2}, .denominator = {4, 0, 0}};
  const TestFeature plain = {.samples = {{5}}, .one_hot = true};
  TestFeature weighted = plain, divided = plain;
  weighted.weight = {0.5f};
  divided.denominator = {8};
  for (const bool wide : {false, true}) {
    BuiltPlans plans({mean, plain, weighted, divided}, 1, 1, wide);
    plans.scatter_all();
    EXPECT_EQ(scattered(plans.update), (std::vector<Scattered>{{0, 1, 0, 0.25f},
                                                               {0, 2, 0, 0.75f},
                                                               {0, 3, 2, 0},
                                                               {0, 5, 4096, 1},
                                                               {0, 5, 8192, 0.5f},
                                                               {0, 5, 12288, 0.125f}}));
  }
}

TEST(Scatter, KeepsCanonicalOrderInEachBucketWhateverTheOrderOfTiles) {
  std::mt19937 random(test_seed(5));
  std::vector<TestFeature> features(2);
  features[1].core = 1;
  for (int i = 0; i < 5000; ++i)
    features[0].samples.push_back(std::vector<std::uint64_t>(random() % 3, random() % 1000));
  for (int i = 0; i < 4500; ++i) features[1].samples.push_back({random() % 1000});
  for (const bool wide : {false, true}) {
    std::vector<Scattered> want;
    for (std::uint32_t f = 0; f < 2; ++f)
      for (std::uint32_t i = 0; i < features[f].samples.size(); ++i)
        for (const std::uint64_t row : features[f].samples[i])
          want.push_back({bucket_of(row, 9), row, f * 2 * 4096 + i, 1});
    std::stable_sort(want.begin(), want.end(),
                     [](const auto& a, const auto& b) { return a.bucket < b.bucket; });
    for (const bool backwards : {false, true}) {
      BuiltPlans plans(features, 1, 9, wide);
      plans.scatter_all(backwards);
      EXPECT_EQ(scattered(plans.update), want);
    }
  }
}

}  // namespace
}  // namespace embertable
