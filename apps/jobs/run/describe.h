#pragma once

#include <filesystem>

#include "checkpoint/json_text.h"

namespace embertable::jobs {

using checkpoint::Json;

/// Returns what a checkpoint's manifest says. `path` is the directory of a run, whose latest step
/// is read, or of a step. Keys: directory, skipped (why higher steps were not read), step, library,
/// numerics_version, seed, pipeline_execution, hosts, replicas_per_host, sharding, bytes, tables,
/// features, files, id_maps, tensors, blobs, user (the caller's JSON). Throws IoError, DataLoss.
Json describe_checkpoint(const std::filesystem::path& path);

}  // namespace embertable::jobs
