#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/shape.h"

namespace embertable::sharded {

/// The entries that a sparse lookup sums, by output row, in the caller's order within each.
struct LookupEntries {
  Shape outputs;                     ///< axes of the ids that stay
  std::vector<std::int64_t> id;      ///< [nnz]
  std::vector<std::int64_t> source;  ///< [nnz], positions in the caller's values; -1: default_id
  std::vector<std::int64_t> split;   ///< [outputs + 1]
};

/// Which entries count and which axes stay.
struct EntryRules {
  bool keep_axes = false;                       ///< all but the last stay, else the first one
  bool prune_ids = false;                       ///< ids below 0 do not count
  bool prune_weights = false;                   ///< weights that are not above 0 do not count
  std::optional<std::int64_t> default_id = {};  ///< the only entry of outputs without others
};

/// Throws TypeError for dense ids and weights of another kind; ValueError for a shape that sparse
/// ids cannot have; DataError, which names sample and position where there are some, for another
/// number of weights or of indices than the ids need, indices outside of their shape, and splits
/// that are none, fall, or do not go from 0 to the number of ids.
LookupEntries entries_of(const FeatureIds& ids, const FeatureWeights& weights,
                         const EntryRules& rules);

/// Returns the weights, or null if every weight is 1. They have the kind of their ids.
const FloatSpan* values_of(const FeatureWeights& weights);

}  // namespace embertable::sharded
