#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/shape.h"
#include "input/feature_reader.h"
#include "rows/plan.h"
#include "step/bucket_policy.h"
#include "step/table_run.h"

namespace embertable::engine {

/// What one core looks up in one step: a plan for each feature, in memory that later steps reuse.
struct CoreBatch {
  struct Item {  ///< one tile of one feature on its way in
    FeatureReader* reader;
    std::int64_t tile;
  };
  struct Feature {
    FeatureReader reader;
    FeatureIds part_ids;  ///< where the replica's batch is cut for its cores
    FeatureWeights part_weights;
  };
  std::vector<Feature> features;
  Arena memory;
  std::vector<Item> items;  ///< all tiles of a call, kept at the first core that it feeds
  std::string name;         ///< the caller's label

  Arena part_memory;              ///< holds the parts
  std::int64_t bytes_before = 0;  ///< bytes of the arenas when a thread began to fill them
  std::int64_t bytes() const { return memory.bytes() + part_memory.bytes(); }
};

/// The gradient of one activation: [outputs, dim] packed, or null for zeros.
using GradientPointer = const float*;

/// One batch of every core, from enqueue until its gradients are applied. Reused.
struct Step {
  std::vector<CoreBatch> core;
  std::vector<HostStep> host;   ///< what each host keeps until the gradients have come
  std::vector<UpdateCut> cuts;  ///< by table, chosen by the first call that feeds it; else empty
  bool training = false;        ///< the mode of all its batches, set by the first one
  bool sequential = false;      ///< its update does not wait for the next forward
  bool refused = false;         ///< its update could not be prepared: it may get no gradients
  std::vector<Shape> shape;     ///< S + [dim] of [replicas * features] activations; see join_shapes

  std::vector<GradientPointer> gradient;  ///< [cores * features], once they have come
  std::vector<float> rates;               ///< by tag, as they were when the gradients came
  Arena gradient_memory;  ///< copies of gradients that outlive the caller's call, or were doubles

  FeatureReader& reader(std::int32_t c, std::int64_t feature) {
    return core[c].features[feature].reader;
  }
  LookupPlan& plan(std::int32_t c, std::int64_t feature) { return reader(c, feature).plan(); }
};

}  // namespace embertable::engine
