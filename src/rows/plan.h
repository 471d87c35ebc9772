#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/entries.h"
#include "base/rows.h"

namespace embertable {

/// Number of output rows that are scattered as one work item. Does not affect results.
inline constexpr std::int64_t kTileRows = 2048;

/// Whether the row numbers of a table with so many rows are wide: see RowNumbers.
constexpr bool needs_wide_numbers(std::int64_t table_rows) {
  return table_rows >= std::int64_t{1} << 31;
}

/// Returns LookupPlan::counts_stride for so many counts of a tile.
constexpr std::int64_t counts_stride_of(std::int64_t counts) { return (counts + 15) / 16 * 16; }

/// The lookup of one feature of one core: arrays in memory that steps reuse. Complete when
/// enqueue returns.
struct LookupPlan {
  std::int64_t outputs = 0;  ///< output rows
  RowNumbers row;            ///< [nnz], canonical order: output row, position
  std::span<const std::int64_t>
      split;                      ///< [outputs + 1], or empty: exactly one entry per output row
  std::span<const float> weight;  ///< [nnz], or empty: all 1
  std::span<const float> denominator;  ///< [outputs], or empty: all 1. Where 0 the output is zeros
  bool zero_denominators = false;      ///< some denominator is 0

  /// Entries per bucket, [tiles()][counts_stride], a tile being kTileRows output rows; the scatter
  /// later uses them as cursors. Empty for inference and for a table with one bucket. Tiles start
  /// on cache lines of their own. Entries of rows named once are counted after the last bucket, by
  /// range, where they are set apart.
  std::span<std::uint32_t> counts;
  std::int64_t counts_stride = 0;

  /// [nnz] where rows named once are set apart, else empty: the bucket of each entry; for an entry
  /// of such a row, the number of buckets and that of its range.
  std::span<std::uint16_t> bucket;

  std::int64_t tiles() const { return (outputs + kTileRows - 1) / kTileRows; }
  std::int64_t first_entry(std::int64_t output) const {
    return split.empty() ? output : split[output];
  }

  /// Returns the first entry of a tile; of tiles(), the number of entries.
  std::int64_t tile_begin(std::int64_t tile) const {
    return first_entry(std::min(tile * kTileRows, outputs));
  }

  /// Calls visit(row) with the row numbers as an array of their own type.
  template <class Visit>
  decltype(auto) visit_rows(Visit visit) const {
    return row.wide ? visit(row.as<std::uint64_t>()) : visit(row.as<std::uint32_t>());
  }

  /// Calls visit(output, entry) for every entry, in order.
  template <class Visit>
  void for_each_entry(Visit visit) const {
    if (split.empty()) {
      for (std::int64_t k = 0; k < outputs; ++k) visit(k, k);
      return;
    }
    const std::int64_t* const first = split.data();
    for (std::int64_t output = 0; output < outputs; ++output)
      for (std::int64_t k = first[output]; k < first[output + 1]; ++k) visit(output, k);
  }

  /// True if an output row is zeros whatever the rows are: it has no entries, or its denominator is
  /// 0. Its gradient reaches no row.
  bool is_zeros(std::int64_t output) const {
    return first_entry(output) == first_entry(output + 1) ||
           (!denominator.empty() && denominator[output] == 0.0f);
  }

  /// True if some entry may scale its gradient.
  bool has_gain() const { return !weight.empty() || !denominator.empty(); }

  /// Gives the factor by which an entry of one output row scales its gradient: weight /
  /// denominator, 0 if the denominator is 0. The gradient is then zeros too: see select_zeros.
  struct Gain {
    const float* weight;  ///< [nnz], or null: all 1
    float denominator;
    float of_one;  ///< the factor where all weights are 1

    float operator()(std::int64_t entry) const {
      if (weight == nullptr) return of_one;
      return denominator == 0.0f ? 0.0f : weight[entry] / denominator;
    }
  };

  /// Returns the factors of the entries of one output row.
  Gain gain(std::int64_t output) const {
    const float d = denominator.empty() ? 1.0f : denominator[output];
    if (!weight.empty()) return {weight.data(), d, 0};
    return {nullptr, d, d == 0.0f ? 0.0f : 1.0f / d};
  }
};

/// The entries of one table in one step, all cores: bucket-major, canonical within a bucket.
/// Entries whose row no other entry names are set apart and follow, by range of rows, canonical
/// within a range.
struct UpdatePlan {
  bool wide = false;      ///< entries are UpdateEntry<uint64_t>, else UpdateEntry<uint32_t>
  void* entry = nullptr;  ///< [nnz]; null: one bucket, taken from `direct`
  float* gain = nullptr;  ///< [nnz], parallel to entry, or null: all 1
  std::span<std::int64_t> bucket;        ///< [buckets + 1]
  std::int64_t once = 0;                 ///< entries set apart, from bucket.back() on
  std::int32_t ranges = 0;               ///< by which they are set apart
  std::span<const GradientPiece> piece;  ///< by entry.out / kPieceRows
  /// One entry per output row of one feature of one core, gain 1.
  const LookupPlan* direct = nullptr;

  std::int64_t buckets() const { return static_cast<std::int64_t>(bucket.size()) - 1; }
  std::int64_t entries() const { return bucket.back() + once; }

  /// Returns the number of lists that entries are scattered into: buckets, then ranges.
  std::int64_t lists() const { return buckets() + ranges; }
};

}  // namespace embertable
