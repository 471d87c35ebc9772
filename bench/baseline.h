#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "bench/baseline_kernels.h"
#include "bench/memory.h"
#include "bench/tables.h"
#include "bench/team.h"
#include "bench/workload.h"

namespace embertable::bench {

/// What the baseline knows of one table's ids in one batch.
struct BaselinePlan {
  std::uint32_t nnz = 0;
  std::uint32_t buckets = 1;
  std::uint32_t cursor_stride = 16;       ///< counts of one tile: whole cache lines
  bool one_hot = false;                   ///< exactly one id a sample
  bool tiny = false;                      ///< few enough rows for an accumulator each
  std::uint32_t* row = nullptr;           ///< [nnz], canonical order
  std::uint32_t* split = nullptr;         ///< [samples + 1], unless one_hot
  std::uint32_t* counts = nullptr;        ///< [tiles, cursor_stride]; the scatter's cursors later
  std::uint32_t* bucket_begin = nullptr;  ///< [buckets + 1]
  std::uint64_t* entries = nullptr;       ///< [nnz], bucket-major; if buckets > 1
  std::uint32_t* sample = nullptr;        ///< [nnz], if there is one bucket and not one_hot

  /// Rows named by the last step over its ids. Sizes the buckets, never shows in a result.
  double unique_share = 1;
  std::atomic<std::uint32_t> unique_rows{0};
};

/// A bucket that holds so much of its table that its pieces are summed by several threads.
struct HeavyBucket {
  std::atomic<int> pieces_left{0};
  std::vector<std::uint32_t> rows_of_piece;
  std::uint32_t* row = nullptr;  ///< [nnz]: each piece's rows from its first entry on
  HugePages sums;                ///< [nnz, dim], likewise
};

/// One training step written for these workloads alone: sum of the rows of a sample, row-wise
/// Adagrad, one feature a table, one of four dims, AVX-512 only. It shows what is left once
/// everything general is left out; the arithmetic, and so every bit, is that of the engine.
///
/// A step is enqueue, forward, backward, in this order, from one thread.
class Baseline {
 public:
  /// The tables' rows are read and written in place and borrowed, as is the team. `most_ids`: of
  /// one table in one batch. Only where baseline_kernels(tables.dim()) is not null.
  Baseline(const PlainTables& tables, std::int32_t samples, std::size_t most_ids, Team& team);

  /// Checks and copies a batch. Throws std::invalid_argument for bad splits or ids; the next call
  /// may bring another.
  void enqueue(const WorkloadBatch& batch);

  /// out: [samples, tables, dim].
  void forward(float* out);

  /// gradients: [samples, tables, dim].
  void backward(const float* gradients);

 private:
  /// Samples that are checked, counted and scattered as one item.
  static constexpr std::int32_t kTileSamples = 2048;

  static constexpr std::uint32_t kMostBuckets = 4096;

  enum class UpdateKind : std::uint8_t { kBucket, kPieceOfBucket, kTinyTables };
  struct UpdateItem {
    UpdateKind kind;
    std::int32_t piece;
    std::uint32_t table;
    std::uint32_t bucket;   ///< or the number of tiny tables
    std::uint32_t entries;  ///< what the item costs
  };

  void take_memory(std::size_t most_ids);
  void size_buckets(const WorkloadBatch& batch);
  void place_buckets(BaselinePlan& plan) const;
  void list_updates();
  void add_to_tiny_group(std::uint32_t table, bool open);
  void add_buckets(std::uint32_t table);
  void start_heavy(std::uint32_t table, std::uint32_t bucket, std::uint32_t entries);

  void list_gathers(float* out);
  void add_one_hot_gathers(std::size_t first_table, std::size_t last_table, float* out);
  void list_scatters();

  void update_bucket(Grouping& grouping, const UpdateItem& item, const float* gradients);
  void update_piece(Grouping& grouping, const UpdateItem& item, const float* gradients);
  void update_tiny(Grouping& grouping, const UpdateItem& item, const float* gradients);
  void read_entries(Grouping& grouping, const UpdateItem& item, const std::uint32_t** row,
                    const std::uint32_t** sample) const;

  std::int32_t pieces() const { return (samples_ + kPieceSamples - 1) / kPieceSamples; }
  Gradients gradients_of(std::uint32_t table, const float* gradients) const {
    return {gradients + std::size_t{table} * dim_, stride_};
  }

  const BaselineKernels& kernels_;
  Team& team_;
  std::span<const TableRows> tables_;
  std::size_t dim_;
  std::size_t stride_;  ///< floats between two samples' activations
  std::int32_t samples_;
  std::int32_t tiles_;
  Arena arena_;
  std::deque<BaselinePlan> plans_;
  std::deque<HeavyBucket> heavy_;
  std::vector<Grouping> groupings_;          ///< by worker
  std::vector<TileContent> content_;         ///< [tables, tiles]
  const std::uint32_t* count_up_ = nullptr;  ///< 0, 1, ...: the samples of a one-hot table
  std::vector<GatherItem> gathers_;
  std::vector<ScatterItem> scatters_;
  std::vector<UpdateItem> updates_;  ///< largest first
};

}  // namespace embertable::bench
