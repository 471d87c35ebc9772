#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory.h"
#include "embertable/batch.h"
#include "input/feature_reader.h"
#include "rows/plan.h"

namespace embertable::engine {

/// What one core looks up in one step: a plan for each feature, in memory that later steps reuse. A
/// step counts cores as replicas; they are the same unless replicas have several.
struct ReplicaBatch {
  struct Item {  ///< one tile of one feature on its way in
    FeatureReader* reader;
    std::int64_t tile;
  };
  std::vector<FeatureReader> readers;  ///< by feature
  Arena memory;
  std::vector<Item> items;
  bool training = false;
  std::string name;  ///< the caller's label

  std::vector<FeatureIds> part_ids;  ///< by feature, where the replica's batch is cut for its cores
  std::vector<FeatureWeights> part_weights;
  Arena part_memory;  ///< of both

  std::int64_t bytes_before = 0;  ///< of the arenas, when a thread began to fill them
  std::int64_t bytes() const { return memory.bytes() + part_memory.bytes(); }
};

/// Rows of one table that one host needs from the others, and the other way round. With one host
/// all is empty.
struct TableRoute {
  std::vector<std::span<std::uint64_t>>
      asked;  ///< by host: its local rows that this host looks up, rising
  std::vector<std::span<const std::uint64_t>>
      owed;                                ///< by host: local rows of this host that it looks up
  std::span<float> received;               ///< [sum of asked, dim], by host
  std::span<std::int64_t> received_first;  ///< [hosts + 1], rows of `received` by host
};

/// What one host keeps of a step until its gradients have come.
struct HostStep {
  std::vector<UpdatePlan> update;  ///< by table
  std::vector<TableRoute> route;   ///< by table
  Arena memory;
};

/// The gradient of one activation: [outputs, dim] packed, or null for zeros.
using GradientPointer = const float*;

/// One batch of every core, from enqueue until its gradients are applied. Reused.
struct Step {
  std::vector<ReplicaBatch> replica;
  std::vector<HostStep> host;
  std::vector<std::int32_t>
      buckets;  ///< of each table's update, chosen by the first replica that enqueues; or empty
  bool training = false;
  bool sequential = false;  ///< its update does not wait for the next forward

  std::vector<GradientPointer> gradient;  ///< [replicas * features], once they have come
  std::vector<float> rates;               ///< by tag, as they were when the gradients came
  Arena gradient_memory;  ///< copies of gradients that outlive the caller's call, or were doubles

  FeatureReader& reader(std::int32_t r, std::int64_t feature) {
    return replica[r].readers[feature];
  }
  LookupPlan& plan(std::int32_t r, std::int64_t feature) { return reader(r, feature).plan(); }
};

}  // namespace embertable::engine
