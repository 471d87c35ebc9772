#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/shape.h"

namespace embertable::engine {

// The batch-size revision: all features of all replicas have one batch size. Source: TF 2.4
// tpu_embedding_v2.py, TPUEmbedding._get_batch_size, _maybe_build, _create_config_proto.

/// Returns the leading dim that all features of all batches have in common, or Shape::kUnknown.
/// `first_replica`: whose the first batch is. Throws ValueError naming two features whose dims
/// differ, or one of rank 0.
std::int64_t common_batch_size(std::span<const Batch> batches, std::int32_t first_replica,
                               std::string_view call);

/// Returns the batches with the dims that they leave open set to the batch size: the given ones if
/// no dim is unknown, else copies in `sized`. `detects`: the size is that of the ids;
/// `since_build`: the size in force, none before the build, kUnknown without features. Throws
/// StateError if a build would not know the size, ValueError for another size or if both sparse and
/// ragged ids come.
std::span<const Batch> with_batch_size(std::span<const Batch> batches, std::int32_t first_replica,
                                       std::string_view call, bool detects,
                                       std::optional<std::int64_t> since_build,
                                       std::vector<Batch>& sized);

}  // namespace embertable::engine
