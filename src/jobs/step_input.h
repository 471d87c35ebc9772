#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embertable/batch.h"
#include "embertable/nested.h"
#include "jobs/data_set.h"

namespace embertable::jobs {

/// Neighbouring samples, borrowed.
struct SampleRange {
  const Samples& all;
  std::int64_t first;
  std::int64_t size;
};

/// The ids of one global batch, as the engine takes them. A batch is cut contiguously: with R
/// replicas of B samples each, replica r gets samples [r * B, (r + 1) * B), so that in a smaller
/// batch the last replicas get fewer or none. Memory is reused: after the first batches `fill`
/// allocates nothing.
class StepInput {
 public:
  /// `columns`: of each feature, in flatten order; borrowed.
  StepInput(const Structure& features, std::vector<const IdColumn*> columns, std::int64_t batch,
            std::int32_t replicas);

  /// Takes up to `batch` samples; labels [samples] receives theirs. What it gave before is gone.
  void fill(const SampleRange& samples, std::span<float> labels);

  /// One for each replica, valid until the next fill.
  std::span<const Batch> batches() const noexcept { return batches_; }

 private:
  struct Column {
    const IdColumn* source;
    std::vector<std::int32_t> ids;     ///< of all replicas, one after the other
    std::vector<std::int64_t> splits;  ///< of lists: [replicas * (per_replica + 1)], each from 0
    std::vector<std::int64_t> begin;   ///< of lists: [replicas + 1], where a replica's ids start
  };
  void fill_cells(const SampleRange& samples, std::span<float> labels);
  void fill_lists(const SampleRange& samples, Column& column) const;

  std::int64_t per_replica_;
  std::vector<Column> columns_;         ///< different ones
  std::vector<std::size_t> column_of_;  ///< by feature
  struct Target {
    std::int64_t cell;
    std::int32_t* ids;
  };
  std::vector<Target> targets_;  ///< where the cells of a sample go
  std::vector<Batch> batches_;
};

}  // namespace embertable::jobs
