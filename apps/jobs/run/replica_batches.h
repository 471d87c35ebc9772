#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/jobs/spec/model.h"
#include "embertable/batch.h"
#include "embertable/shape.h"

namespace embertable::jobs {

/// The ids of one step in the form that the engine takes. A step is cut contiguously: with R
/// replicas of B samples each, replica r gets samples [r * B, (r + 1) * B), so that in a smaller
/// step the last replicas get fewer or none. Memory is reused: after the first steps `cut`
/// allocates nothing.
class ReplicaBatches {
 public:
  /// `features` are in the model's order; `leaf` is the place of each in `structure`.
  ReplicaBatches(const Structure& structure, const std::vector<ModelFeature>& features,
                 std::vector<std::int64_t> leaf, std::int64_t batch, std::int32_t replicas);

  /// Returns the ids, by feature, for the model to fill.
  std::span<StepIds> ids() noexcept { return ids_; }

  /// Cuts the contents of ids() for this many samples into batches.
  std::span<const Batch> cut(std::int64_t samples);

 private:
  void cut_lists(std::size_t feature, std::int64_t samples);

  std::int64_t per_replica_;
  std::vector<ModelFeature> features_;
  std::vector<std::int64_t> leaf_;
  std::vector<StepIds> ids_;
  std::vector<std::vector<std::int64_t>> splits_;  ///< splits of lists: each replica's, from 0
  std::vector<Batch> batches_;
};

}  // namespace embertable::jobs
