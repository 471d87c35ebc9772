#pragma once

#include <filesystem>

#include "checkpoint/json_text.h"

namespace embertable::jobs {

using checkpoint::Json;

/// What a checkpoint says of itself, read from its manifest alone: `path` is a run's directory, of
/// which the latest step is taken, or a step's. Keys: directory, skipped (why higher steps were not
/// taken), step, library, numerics_version, seed, pipeline_execution, hosts, replicas_per_host,
/// sharding, bytes, tables, features, files, id_maps, tensors, blobs, user (the caller's JSON).
/// Throws IoError, DataLoss.
Json describe_checkpoint(const std::filesystem::path& path);

}  // namespace embertable::jobs
