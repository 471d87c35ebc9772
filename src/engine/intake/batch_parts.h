#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "embertable/batch.h"
#include "engine/schedule/step.h"

namespace embertable::engine {

/// Throws ValueError naming path and replica unless the ids of one feature can be cut on axis 0
/// into `parts` equal parts; ragged ids cannot.
void check_can_be_cut(const FeatureIds& ids, std::int64_t parts, const std::string& path,
                      std::int32_t replica);

/// Gives each core its part of one feature of its replica's batch: equal parts on axis 0, entries
/// in the caller's order. Returns false if ids and weights contradict each other; the parts are
/// then unspecified. Source: TF tpu_embedding_v2.py, _split_tensors (num_cores_per_replica).
bool cut_in_parts(const FeatureIds& ids, const FeatureWeights& weights, std::int64_t feature,
                  std::span<CoreBatch> cores);

}  // namespace embertable::engine
