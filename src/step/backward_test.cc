#include "step/backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "kernels/tile_update.h"
#include "step/small_tables.h"
#include "testing/built_plans.h"
#include "testing/reference_sum.h"

namespace embertable {
namespace {

/// The row becomes its gradient, its slot counts updates.
void assign_rows(const RowTile& tile, const StepScalars& step) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i) {
    for (std::int32_t c = 0; c < tile.dim; ++c)
      tile.row[i][c] = step.learning_rate * tile.gradient[i][c];
    *tile.slot[0][i] += 1;
  }
}

constexpr float kUntouched = -77;

struct Table {
  Table(std::int64_t num_rows, std::int32_t dim)
      : floats(num_rows * dim, kUntouched), counts(num_rows) {
    rows = {.row = floats.data(), .stride = dim, .slots = 1, .dim = dim, .rows = num_rows};
    rows.slot[0] = counts.data(), rows.slot_stride[0] = 1;
  }
  TableUpdate update(const BuiltPlans& plans) const {
    return {.rows = rows,
            .update_rows = assign_rows,
            .step = {.learning_rate = 1},
            .plan = plans.update,
            .gradients = plans.source()};
  }
  GuardedFloats floats, counts;
  RowBlock rows;
};

/// Each row's gradient by the promise, straight from the features.
void expect_promised_rows(const std::vector<TestFeature>& features, const BuiltPlans& plans,
                          Table& table) {
  struct Named {
    std::vector<std::uint32_t> out;
    std::vector<float> gain;
  };
  std::map<std::uint64_t, Named> rows;
  for (std::size_t f = 0; f < features.size(); ++f) {
    std::int64_t j = 0;
    for (std::size_t i = 0; i < features[f].samples.size(); ++i)
      for (const std::uint64_t row : features[f].samples[i]) {
        rows[row].out.push_back(plans.first_piece[f] * 4096 + static_cast<std::uint32_t>(i));
        rows[row].gain.push_back(plans.lookups[f].gain(static_cast<std::int64_t>(i))(j++));
      }
  }
  const std::vector<GradientPiece> pieces(plans.update.piece.begin(), plans.update.piece.end());
  const std::int32_t dim = table.rows.dim;
  for (std::int64_t r = 0; r < table.rows.rows; ++r) {
    const auto named = rows.find(static_cast<std::uint64_t>(r));
    const bool any = named != rows.end();
    const std::vector<float> want =
        any ? promised_sum(named->second.out, named->second.gain, pieces, dim)
            : std::vector<float>(dim, kUntouched);
    ASSERT_EQ(std::memcmp(table.floats.data() + r * dim, want.data(), want.size() * sizeof(float)),
              0)
        << "row " << r;
    ASSERT_EQ(table.counts[r], any ? 1 : 0) << "row " << r;
  }
}

void run(const std::vector<TestFeature>& features, std::int64_t num_rows, std::int32_t dim,
         std::uint32_t buckets, bool direct = false) {
  for (const SimdLevel level : usable_levels())
    for (const bool wide : {false, true}) {
      BuiltPlans plans(features, dim, buckets, wide);
      std::int64_t entries = 0, most = 0, distinct = 0;
      for (const LookupPlan& plan : plans.lookups) entries += plan.row.size;
      if (direct)
        plans.update.direct = &plans.lookups[0];
      else
        plans.scatter_all();
      for (std::int64_t b = 0; b < plans.update.buckets(); ++b)
        most = std::max(most, plans.update.bucket[b + 1] - plans.update.bucket[b]);
      GroupScratch scratch;
      scratch.reserve(most, wide, dim);
      Table table(num_rows, dim);
      for (std::int64_t b = 0; b < plans.update.buckets(); ++b)
        distinct +=
            update_entries(table.update(plans), plans.update.bucket[b],
                           plans.update.bucket[b + 1] - plans.update.bucket[b], scratch, level)
                .rows;
      SCOPED_TRACE(testing::Message() << to_string(level) << (wide ? " wide" : "") << ", dim "
                                      << dim << ", " << entries << " entries");
      expect_promised_rows(features, plans, table);
      std::int64_t touched = 0;
      for (std::int64_t r = 0; r < num_rows; ++r) touched += table.counts[r] != 0;
      ASSERT_EQ(distinct, touched);
    }
}

TestFeature bags(std::size_t samples, unsigned num_rows, unsigned most, unsigned hot,
                 unsigned seed) {
  std::mt19937 random(seed);
  TestFeature feature;
  for (std::size_t i = 0; i < samples; ++i) {
    auto& sample = feature.samples.emplace_back();
    for (unsigned n = random() % (most + 1); n > 0; --n)
      sample.push_back(random() % 100 < hot ? 5 % num_rows : random() % num_rows);
  }
  return feature;
}

TestFeature one_hot(std::size_t samples, unsigned num_rows, unsigned hot, unsigned seed) {
  std::mt19937 random(seed);
  TestFeature feature = {.one_hot = true};
  for (std::size_t i = 0; i < samples; ++i)
    feature.samples.push_back({random() % 100 < hot ? 5 % num_rows : random() % num_rows});
  return feature;
}

void divide_by_two(TestFeature& feature) {
  feature.denominator.assign(feature.samples.size(), 2);
  feature.denominator[1] = 0;
}

TEST(UpdateEntries, SumsABucketOfOneFeature) {
  for (const std::int32_t dim : {1, 3, 16, 17, 64, 100})
    for (const std::uint32_t buckets : {1u, 2u, 7u})
      run({bags(300, 500, 4, 10, 1)}, 500, dim, buckets);
}

TEST(UpdateEntries, SumsPiecesFeaturesAndCores) {
  std::vector<TestFeature> features = {bags(9000, 3000, 2, 5, 1), one_hot(100, 3000, 50, 2),
                                       bags(4097, 3000, 3, 5, 3), one_hot(4096, 3000, 0, 4)};
  features[2].core = features[3].core = 1;
  for (const std::int32_t dim : {2, 16}) {
    run(features, 3000, dim, 5);
    features[1].null_gradient = true;
    run(features, 3000, dim, 5);
    divide_by_two(features[2]);
    run(features, 3000, dim, 5);
    features[1].null_gradient = false;
    features[2].denominator.clear();
  }
}

TEST(UpdateEntries, TakesADirectPlanInPieces) {
  for (const std::size_t samples : {1, 4096, 4097, 10000})
    for (const std::int32_t dim : {1, 16, 33})
      run({one_hot(samples, 2000, 10, 7)}, 2000, dim, 1, true);
}

TEST(UpdateEntries, SumsOneRowNamedByAll) { run({one_hot(10000, 1, 0, 8)}, 3, 16, 3); }

TEST(UpdateEntries, LeavesATableWithoutEntriesAlone) {
  run({TestFeature{.samples = std::vector<std::vector<std::uint64_t>>(5)}}, 40, 8, 2);
}

TEST(UpdateEntries, GivesWhatTheSameBucketOfARuleWithFusedFormGets) {
  static GroupedEntries<std::uint32_t> seen;
  const TestFeature feature = bags(300, 200, 3, 10, 9);
  BuiltPlans plans({feature}, 8, 1, false);
  plans.scatter_all();
  GroupScratch scratch;
  scratch.reserve(plans.update.bucket[1], false, 8);
  const Table table(200, 8);
  TableUpdate update = table.update(plans);
  update.update_groups = [](const GroupedEntries<std::uint32_t>& entries, const GradientSource&,
                            const RowBlock&, const StepScalars&) noexcept {
    seen = entries;
    return true;
  };
  const UpdatedRows updated =
      update_entries(update, 0, plans.update.bucket[1], scratch, simd_level());
  EXPECT_EQ(updated.rows, seen.singles + seen.multis);
  EXPECT_EQ(updated.once, seen.singles);
  EXPECT_EQ(seen.singles + seen.multi_start[seen.multis], plans.update.bucket[1]);
}

std::int64_t distinct_rows(const TestFeature& feature) {
  std::set<std::int64_t> rows;
  for (const auto& sample : feature.samples) rows.insert(sample.begin(), sample.end());
  return static_cast<std::int64_t>(rows.size());
}

/// Tables in step: one feature each.
void run_small(const std::vector<TestFeature>& features, const std::vector<std::int32_t>& dims,
               std::int64_t num_rows) {
  for (const SimdLevel level : usable_levels()) {
    std::vector<std::unique_ptr<BuiltPlans>> plans;
    std::vector<std::unique_ptr<Table>> tables;
    std::vector<TableUpdate> updates;
    std::int64_t floats = 0;
    for (std::size_t t = 0; t < features.size(); ++t) {
      plans.push_back(
          std::make_unique<BuiltPlans>(std::vector<TestFeature>{features[t]}, dims[t], 1, false));
      plans[t]->update.direct = &plans[t]->lookups[0];
      tables.push_back(std::make_unique<Table>(num_rows, dims[t]));
      updates.push_back(tables[t]->update(*plans[t]));
      floats += num_rows * padded(dims[t]);
    }
    GroupScratch scratch;
    scratch.reserve_small(num_rows * static_cast<std::int64_t>(features.size()), floats);
    for (int again = 0; again < 2; ++again) {
      for (const auto& table : tables) {
        std::fill_n(table->counts.data(), num_rows, 0.0f);
        std::fill_n(table->floats.data(), table->floats.size(), kUntouched);
      }
      std::vector<std::int64_t> unique(updates.size());
      std::vector<const TableUpdate*> side_by_side;
      for (const TableUpdate& update : updates) side_by_side.push_back(&update);
      update_small_tables(side_by_side.data(), static_cast<std::int32_t>(updates.size()),
                          unique.data(), scratch, level);
      for (std::size_t t = 0; t < features.size(); ++t) {
        EXPECT_EQ(unique[t], distinct_rows(features[t]));
        SCOPED_TRACE(testing::Message()
                     << to_string(level) << ", table " << t << ", dim " << dims[t]);
        expect_promised_rows({features[t]}, *plans[t], *tables[t]);
      }
    }
  }
}

TEST(UpdateSmallTables, AddsTablesSideBySide) {
  for (const std::int32_t dim : {1, 15, 16, 32, 33, 64, 128}) {
    std::vector<TestFeature> features;
    for (unsigned t = 0; t < 8; ++t) features.push_back(one_hot(200 + t % 3, 50, t * 10, t));
    run_small(features, std::vector<std::int32_t>(8, dim), 50);
  }
}

TEST(UpdateSmallTables, TakesTablesOfAnyDimAndBatch) {
  std::vector<TestFeature> features = {one_hot(1, 30, 0, 1), one_hot(4000, 30, 0, 2),
                                       one_hot(3, 30, 0, 3), one_hot(4096, 30, 90, 4),
                                       one_hot(4095, 30, 90, 5)};
  features[3].null_gradient = true;
  run_small(features, {16, 16, 16, 16, 16}, 30);
  run_small(features, {16, 7, 7, 64, 16}, 30);
}

TEST(UpdateSmallTables, KeepMinusZero) {
  const TestFeature feature = {.samples = {{2}},
                               .one_hot = true};  // the first gradient is -0 at column 0
  run_small({feature}, {16}, 4);
}

}  // namespace
}  // namespace embertable
