#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/tables.h"

namespace embertable::bench {

/// Output rows whose gradients are summed as one piece. Part of the arithmetic.
inline constexpr std::int32_t kPieceSamples = 4096;

/// One-hot tables that one item gathers at most.
inline constexpr int kMostTablesAbreast = 16;

/// Tiny tables that one item updates at most, and the bytes of their rows together.
inline constexpr int kMostTinyTables = 8;
inline constexpr std::size_t kTinyGroupBytes = std::size_t{256} << 10;

/// Checks the samples first..last-1 of one table and narrows their ids.
struct NarrowTile {
  const std::int64_t* ids;     ///< the table's
  const std::int64_t* splits;  ///< [samples + 1]
  std::int32_t samples;
  std::int32_t first;
  std::int32_t last;
  std::uint64_t num_rows;
  std::uint32_t buckets;
  std::uint32_t* row;     ///< [nnz], the tile's part is written
  std::uint32_t* split;   ///< [samples + 1], the tile's part is written unless it is one-hot
  std::uint32_t* counts;  ///< [buckets], entries of the tile per bucket; written if buckets > 1
};
enum class TileContent : std::uint8_t { kOneHot, kBags, kBadSplits, kBadId };

/// Rows into activations, for samples first..last-1: one table of bags, or up to kMostTablesAbreast
/// one-hot tables side by side.
struct GatherItem {
  const float* rows[kMostTablesAbreast];
  const std::uint32_t* row[kMostTablesAbreast];
  int tables;
  const std::uint32_t* split;  ///< [samples + 1] of the one table, or null: one-hot
  std::int32_t first;
  std::int32_t last;
  float* out;  ///< activation of sample s, first table: out + s * stride
  std::size_t stride;
};

/// Entries of one table into its buckets, for samples first..last-1: a stable counting scatter.
struct ScatterItem {
  const std::uint32_t* row;
  const std::uint32_t* split;  ///< [samples + 1], or null: one-hot
  std::int32_t first;
  std::int32_t last;
  std::uint32_t buckets;
  std::uint32_t* cursors;  ///< [buckets], where the next entry of each goes
  std::uint64_t* entries;  ///< row in the low half, sample in the high half; if buckets > 1
  std::uint32_t* sample;   ///< the sample of each entry in canonical order; if buckets == 1
};

/// The entries of a bucket by row, and the memory that grouping needs; [n] for most entries n, with
/// 64 to spare. Rows that are named once stand apart: they need neither order nor sum.
struct Grouping {
  std::uint32_t singles;
  std::uint32_t multiples;
  std::uint32_t* single_row;
  std::uint32_t* single_sample;
  std::uint32_t* multiple_row;
  std::uint32_t* multiple_start;  ///< [multiples + 1], into order
  std::uint32_t* order;           ///< samples of the multiples, each row's in canonical order

  std::uint32_t* entry_row;  ///< entries taken apart
  std::uint32_t* entry_sample;
  std::uint32_t* hash;
  std::uint32_t* slot;  ///< [4 n]
  std::uint32_t* first;
  std::uint32_t* count;
  std::uint32_t* start;
  std::uint32_t* loser;

  float* sums;             ///< kTinyGroupBytes
  std::uint32_t* touched;  ///< [kTinyGroupBytes / 64]
};

/// Gradients of one table: that of sample s starts at base + s * stride.
struct Gradients {
  const float* base;
  std::size_t stride;
};

struct Rates {
  float learning_rate;
  float epsilon;
};

/// Tiny one-hot tables side by side, all samples of the batch.
struct TinyItem {
  const TableRows* tables;
  const std::uint32_t* row[kMostTinyTables];
  int count;
  std::int32_t samples;
  Gradients gradients;  ///< of the first table; the others follow, `dim` floats each
};

/// The inner loops of the baseline's step for one dim. All written for AVX-512; no allocation, no
/// checks.
struct BaselineKernels {
  TileContent (*narrow_tile)(const NarrowTile& tile);

  /// `next`: what this thread gathers after `item`, or null; its first rows are prefetched.
  void (*gather)(const GatherItem& item, const GatherItem* next);
  void (*scatter)(const ScatterItem& item);

  /// Takes packed entries apart into entry_row and entry_sample.
  void (*unpack)(Grouping& grouping, const std::uint64_t* entries, std::uint32_t count);

  /// Groups the entries (row[i], sample[i]), 0 <= i < count, and prefetches their rows on the way.
  void (*group)(Grouping& grouping, const std::uint32_t* row, const std::uint32_t* sample,
                std::uint32_t count, const TableRows& table);

  /// Sums each grouped row's gradients (in pieces, if `pieces`) and applies row-wise Adagrad.
  void (*update)(const Grouping& grouping, const TableRows& table, const Gradients& gradients,
                 bool pieces, const Rates& rates);

  /// Writes each grouped row's sum, without pieces, to sums [rows, dim] and its number to row.
  /// Returns the rows.
  std::uint32_t (*sum)(const Grouping& grouping, const Gradients& gradients, std::uint32_t* row,
                       float* sums);

  /// Adds the gradients up per row without grouping, and applies row-wise Adagrad to the rows that
  /// were named.
  void (*update_tiny)(Grouping& grouping, const TinyItem& item, const Rates& rates);
};

/// Null unless the CPU has AVX-512 (see cpu.h) and the dim is 16, 32, 64 or 256.
const BaselineKernels* baseline_kernels(std::int32_t dim);

}  // namespace embertable::bench
