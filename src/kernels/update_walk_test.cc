// Both ways from grouped entries to updated rows: tiles, and sums that stay in registers.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/bfloat16.h"
#include "base/random.h"
#include "kernels/group.h"
#include "kernels/tile_update.h"
#include "testing/guarded_floats.h"
#include "testing/reference_sum.h"

#define EMBERTABLE_LEVEL_BODY "kernels/update_walk_test.inl"
#include "kernels/for_each_level.inl"

namespace embertable {
namespace {

UpdateGroups<std::uint32_t> fused(SimdLevel level, std::int32_t dim) {
  if (dim < 16) return EMBERTABLE_AT_LEVEL(level, assign_narrow_groups);
  switch (dim) {
    case 16:
      return EMBERTABLE_AT_LEVEL(level, assign_groups<1>);
    case 32:
      return EMBERTABLE_AT_LEVEL(level, assign_groups<2>);
    case 64:
      return EMBERTABLE_AT_LEVEL(level, assign_groups<4>);
    case 128:
      return EMBERTABLE_AT_LEVEL(level, assign_groups<8>);
    case 256:
      return EMBERTABLE_AT_LEVEL(level, assign_groups<16>);
    default:
      return nullptr;
  }
}

/// What Assign does, any dim.
void assign_rows(const RowTile& tile, const StepScalars&) noexcept {
  for (std::int32_t i = 0; i < tile.rows; ++i) {
    for (std::int32_t c = 0; c < tile.dim; ++c) tile.row[i][c] = tile.gradient[i][c];
    *tile.slot[0][i] += 1;
    tile.slot[1][i][tile.dim - 1] += 1;
  }
}

constexpr std::int64_t kRows = 150;  // several blocks, of which the last one is not whole
constexpr float kUntouched = -77;

/// The entries of one bucket, and the gradients that they name.
struct Bucket {
  std::int32_t dim = 0;
  std::vector<std::uint32_t> row, out;  ///< out rises
  std::vector<float> gain;              ///< or empty
  std::vector<GradientPiece> pieces;
  bool one_source = false;
  bool grouped = true;  ///< false requires that each row is named once
  bool near_gradients = false, bursts = false;

  const float* gains() const { return gain.empty() ? nullptr : gain.data(); }
  GradientSource source() const {
    GradientSource source = {.piece = pieces.data()};
    if (one_source) source.base = pieces[0].base, source.stride = pieces[0].stride;
    return source;
  }
};

/// A table whose records end where a page begins that cannot be touched: [row | full slot | gap].
/// Without a gap those of many dims are whole cache lines.
struct Table {
  explicit Table(std::int32_t dim, std::int32_t gap)
      : floats((kRows - 1) * (2 * dim + gap) + 2 * dim, kUntouched), counts(kRows) {
    rows = {.row = floats.data(), .stride = 2 * dim + gap, .slots = 2, .dim = dim, .rows = kRows};
    rows.slot[0] = counts.data(), rows.slot_stride[0] = 1;
    rows.slot[1] = floats.data() + dim, rows.slot_stride[1] = rows.stride;
  }
  GuardedFloats floats, counts;
  RowBlock rows;
};

template <class Index>
struct Grouped {
  explicit Grouped(const Bucket& bucket, const RowBlock& rows)
      : row(bucket.row.begin(), bucket.row.end()),
        numbers(9, std::vector<std::uint32_t>(bucket.row.size() + 200)),
        table(static_cast<std::size_t>(
            GroupMemory<Index>::table_size(static_cast<std::int64_t>(row.size())))),
        single(row.size() + 64),
        multi(row.size() + 64),
        gains(2, std::vector<float>(row.size() + 64)) {
    GroupMemory<Index> m;
    m.hash = numbers[0].data(), m.first = numbers[1].data(), m.count = numbers[2].data(),
    m.start = numbers[3].data();
    m.loser = numbers[4].data(), m.single_out = numbers[5].data(),
    m.multi_start = numbers[6].data();
    m.order = numbers[7].data(), m.table = table.data(), m.single_row = single.data(),
    m.multi_row = multi.data();
    m.single_gain = gains[0].data(), m.order_gain = gains[1].data();
    entries = group<Index>({row.data(), bucket.out.data(), bucket.gains(),
                            static_cast<std::int64_t>(row.size()), rows, m},
                           SimdLevel::kScalar);
    if (!bucket.grouped)
      entries = {.single_row = row.data(),
                 .single_out = bucket.out.data(),
                 .singles = static_cast<std::int64_t>(row.size()),
                 .single_gain = bucket.gains()};
    entries.near_gradients = bucket.near_gradients;
    entries.bursts = bucket.bursts;
  }
  std::vector<Index> row;
  std::vector<std::vector<std::uint32_t>> numbers;
  std::vector<std::uint32_t> table;
  std::vector<Index> single, multi;
  std::vector<std::vector<float>> gains;
  GroupedEntries<Index> entries;
};

void expect_promised_rows(const Bucket& bucket, Table& table, const char* what, SimdLevel level) {
  const std::int32_t dim = bucket.dim;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    std::vector<std::uint32_t> out;
    std::vector<float> gain;
    for (std::size_t i = 0; i < bucket.row.size(); ++i) {
      if (bucket.row[i] != r) continue;
      out.push_back(bucket.out[i]);
      if (!bucket.gain.empty()) gain.push_back(bucket.gain[i]);
    }
    const bool named = !out.empty();
    const auto width = static_cast<std::size_t>(dim);
    const std::vector<float> want =
        named ? promised_sum(out, gain, bucket.pieces, dim) : std::vector<float>(width, kUntouched);
    const float* record = table.rows.row + r * table.rows.stride;
    ASSERT_EQ(std::memcmp(record, want.data(), width * sizeof(float)), 0)
        << what << " at " << to_string(level) << ", dim " << dim << ", row " << r;
    ASSERT_EQ(table.counts[r], named ? 1 : 0) << what << ": each row once";
    ASSERT_EQ(record[2 * dim - 1], kUntouched + (named ? 1 : 0));
    for (std::int32_t c = dim; c < 2 * dim - 1; ++c) ASSERT_EQ(record[c], kUntouched);
    if (r + 1 == kRows) continue;
    for (std::int64_t c = 2 * dim; c < table.rows.stride; ++c) ASSERT_EQ(record[c], kUntouched);
  }
}

template <class Index>
void run_tiles(const Bucket& bucket, std::int32_t gap, SimdLevel level) {
  Table table(bucket.dim, gap);
  const Grouped<Index> grouped(bucket, table.rows);
  std::vector<float> sums(RowTile::kRows * padded(bucket.dim));
  update_by_tiles<Index>(
      {grouped.entries, bucket.source(), table.rows, assign_rows, {}, sums.data()}, level);
  expect_promised_rows(bucket, table, sizeof(Index) == 4 ? "tiles" : "tiles of wide rows", level);
}

/// A table of bfloat16: [row | full slot | gap], floats from the border of a float on.
struct HalfTable {
  HalfTable(std::int32_t dim, std::int32_t gap)
      : record((dim + 1) / 2 + dim + gap), floats(kRows * record), counts(kRows) {
    rows = {.stride = 2 * record, .slots = 2, .dim = dim, .rows = kRows};
    rows.type = RowType::kBfloat16;
    rows.half = reinterpret_cast<std::uint16_t*>(floats.data());
    rows.rounding = {.stream = 77, .first = 5, .step = 3};
    rows.slot[0] = counts.data(), rows.slot_stride[0] = 1;
    rows.slot[1] = floats.data() + (dim + 1) / 2, rows.slot_stride[1] = record;
  }
  std::int64_t record;  ///< floats
  GuardedFloats floats, counts;
  RowBlock rows;
};

/// Both forms round alike; what the form by tiles gives is tested with half_rows and by engines.
void run_half(const Bucket& bucket, std::int32_t gap, SimdLevel level) {
  const StepScalars step = {.row_low = -std::numeric_limits<float>::infinity(),
                            .row_high = std::numeric_limits<float>::infinity(),
                            .step = 9};
  HalfTable tiles(bucket.dim, gap), walk(bucket.dim, gap);
  const Grouped<std::uint32_t> grouped(bucket, walk.rows);
  std::vector<float> sums(RowTile::kRows * padded(bucket.dim)), wide(sums.size());
  update_by_tiles<std::uint32_t>(
      {grouped.entries, bucket.source(), tiles.rows, assign_rows, step, sums.data(), wide.data()},
      level);
  const bool done = fused(level, bucket.dim)(grouped.entries, bucket.source(), walk.rows, step);
  ASSERT_EQ(done, gap == 0 && level != SimdLevel::kScalar) << "only packed rows have this form";
  if (!done) return;
  for (std::int64_t i = 0; i < walk.floats.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(walk.floats[i]),
              std::bit_cast<std::uint32_t>(tiles.floats[i]))
        << to_string(level) << ", dim " << bucket.dim << ", gap " << gap << ", row "
        << i / walk.record;
  for (std::uint32_t r = 0; r < kRows; ++r) ASSERT_EQ(walk.counts[r], tiles.counts[r]);
}

void run_at(const Bucket& bucket, std::int32_t gap, SimdLevel level) {
  run_tiles<std::uint32_t>(bucket, gap, level);
  run_tiles<std::uint64_t>(bucket, gap, level);
  if (fused(level, bucket.dim) == nullptr) return;
  Table table(bucket.dim, gap);
  const Grouped<std::uint32_t> grouped(bucket, table.rows);
  ASSERT_TRUE(fused(level, bucket.dim)(grouped.entries, bucket.source(), table.rows, {}));
  expect_promised_rows(bucket, table, gap == 0 ? "walk over packed rows" : "walk", level);
  if (bucket.dim >= 16) run_half(bucket, gap, level);
}

void run_all(Bucket bucket) {
  for (const auto& [near, bursts] : {std::pair(false, false), {true, true}, {false, true}}) {
    bucket.near_gradients = near;
    bucket.bursts = bursts;
    for (const SimdLevel level : usable_levels())
      for (const std::int32_t gap : {0, 3}) run_at(bucket, gap, level);
  }
}

/// Gradients of several pieces; the last row of each ends where a page begins that cannot be read.
class Gradients {
 public:
  Gradients(std::int32_t dim, std::vector<std::int32_t> cores, std::int64_t piece_rows) {
    std::mt19937 random(static_cast<unsigned>(dim));
    std::normal_distribution<float> normal;
    for (const std::int32_t core : cores) {
      auto& floats = *memory_.emplace_back(std::make_unique<GuardedFloats>(piece_rows * dim));
      for (std::int64_t i = 0; i < floats.size(); ++i)
        floats[i] = i % 11 == 0 ? -0.0f : normal(random);
      pieces.push_back({floats.data(), dim, core});
    }
  }
  std::vector<GradientPiece> pieces;

 private:
  std::vector<std::unique_ptr<GuardedFloats>> memory_;
};

/// `n` entries spread over the pieces; row 3 gets `hot` percent.
Bucket spread(std::int32_t dim, const std::vector<GradientPiece>& pieces, std::int64_t piece_rows,
              std::size_t n, unsigned hot) {
  std::mt19937 random(static_cast<unsigned>(n));
  Bucket bucket = {.dim = dim, .pieces = pieces};
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = i * pieces.size() * static_cast<std::size_t>(piece_rows) / n;
    const auto rows = static_cast<std::size_t>(piece_rows);
    bucket.out.push_back(static_cast<std::uint32_t>(at / rows * kPieceRows + at % rows));
    bucket.row.push_back(random() % 100 < hot ? 3 : random() % static_cast<unsigned>(kRows));
  }
  return bucket;
}

std::vector<std::int32_t> edge_dims() {
  std::vector<std::int32_t> dims;
  for (std::int32_t dim = 1; dim <= 70; ++dim) dims.push_back(dim);
  dims.insert(dims.end(), {96, 128, 256, 1000});
  return dims;
}

void with_and_without_gain(Bucket bucket) {
  run_all(bucket);
  for (std::size_t i = 0; i < bucket.row.size(); ++i)
    bucket.gain.push_back(i % 5 == 0   ? 1.0f
                          : i % 7 == 0 ? 0.0f
                                       : 0.1f * static_cast<float>(i % 13));
  run_all(bucket);
}

TEST(RowUpdate, SumsOnePieceLeftToRight) {
  for (const std::int32_t dim : edge_dims()) {
    const Gradients gradients(dim, {0}, 30);
    for (const std::size_t n : {1, 90, 300}) {
      Bucket bucket = spread(dim, gradients.pieces, 30, n, 0);
      with_and_without_gain(bucket);
      bucket.one_source = true;
      with_and_without_gain(bucket);
    }
  }
}

TEST(RowUpdate, SumsPiecesThenCores) {
  for (const std::int32_t dim : {1, 15, 16, 32, 33, 64, 100, 128, 256}) {
    const Gradients gradients(dim, {0, 0, 0, 1, 2, 2}, 7);
    for (const unsigned hot : {0u, 50u, 100u})
      with_and_without_gain(spread(dim, gradients.pieces, 7, 150, hot));
  }
}

TEST(RowUpdate, TakesRowsNamedOnceInTheOrderOfTheOutputRows) {
  for (const std::int32_t dim : edge_dims()) {
    const Gradients one(dim, {0}, 25), several(dim, {0, 0, 1}, 9);
    for (const std::size_t n : {std::size_t{1}, static_cast<std::size_t>(kRows)}) {
      Bucket bucket = spread(dim, one.pieces, 25, n, 0),
             pieces = spread(dim, several.pieces, 9, n, 0);
      for (Bucket* each : {&bucket, &pieces}) {
        each->grouped = false;
        for (std::size_t i = 0; i < n; ++i)
          each->row[i] = static_cast<std::uint32_t>(i * 37 % static_cast<std::size_t>(kRows));
        with_and_without_gain(*each);
      }
      bucket.one_source = true;
      with_and_without_gain(bucket);
    }
  }
}

TEST(RowUpdate, EndsPiecesOfOneSourceEvery4096Rows) {
  for (const std::int32_t dim : {1, 16, 20, 64}) {
    Gradients gradients(dim, {0}, 3 * kPieceRows);
    const GradientPiece all = gradients.pieces[0];
    for (std::int64_t p : {1, 2})
      gradients.pieces.push_back({all.base + p * kPieceRows * dim, dim, 0});
    for (const unsigned hot : {20u, 100u}) {
      Bucket bucket = spread(dim, gradients.pieces, kPieceRows, 500, hot);
      bucket.one_source = true;
      with_and_without_gain(bucket);
    }
  }
}

TEST(RowUpdate, TakesANullGradientAsZeros) {
  for (const std::int32_t dim : {1, 16, 70}) {
    GuardedFloats zeros(dim);
    Gradients gradients(dim, {0, 1}, 9);
    gradients.pieces[1] = {zeros.data(), 0, 1};
    with_and_without_gain(spread(dim, gradients.pieces, 9, 80, 30));
    Bucket only = spread(dim, {{zeros.data(), 0, 0}}, 9, 80, 30);
    only.one_source = true;
    with_and_without_gain(only);
  }
}

TEST(RowUpdate, AddsAHotRowTenThousandTimes) {
  const Gradients gradients(16, {0, 0, 0}, 3400);
  const Bucket bucket = spread(16, gradients.pieces, 3400, 10000, 100);
  run_all(bucket);
  std::vector<double> exact(16);
  for (const std::uint32_t out : bucket.out)
    for (std::size_t c = 0; c < 16; ++c)
      exact[c] += double{bucket.pieces[out / kPieceRows].base[out % kPieceRows * 16 + c]};
  const std::vector<float> sum = promised_sum(bucket.out, {}, bucket.pieces, 16);
  for (std::size_t c = 0; c < 16; ++c) EXPECT_NEAR(sum[c], exact[c], 1e-5 * 10000);
}

// A carry that is added to this NaN makes it a zero.
TEST(RowUpdate, KeepsNanInAnyColumnOfBfloat16) {
  for (const std::int32_t dim : {16, 32, 64, 128, 256}) {
    for (std::int32_t column = 0; column < dim; ++column) {
      GuardedFloats gradients(3 * dim, 0.1f);
      gradients[dim + column] = std::bit_cast<float>(0x7fffffffu);
      const Bucket bucket = {
          .dim = dim, .row = {4, 9, 2}, .out = {0, 1, 2}, .pieces = {{gradients.data(), dim, 0}}};
      for (const SimdLevel level : usable_levels()) run_half(bucket, 0, level);
    }
  }
}

TEST(RowUpdate, KeepsMinusZeroOfASingleEntry) {
  for (const std::int32_t dim : {5, 16, 64}) {
    GuardedFloats gradient(dim, -0.0f);
    Bucket bucket = {.dim = dim, .row = {4}, .out = {0}, .pieces = {{gradient.data(), dim, 0}}};
    run_all(bucket);
    EXPECT_TRUE(std::signbit(promised_sum({0}, {}, bucket.pieces, dim)[0]));
  }
}

}  // namespace
}  // namespace embertable
