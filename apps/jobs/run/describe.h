#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/json_text.h"

namespace embertable::jobs {

using checkpoint::Json;

/// What a checkpoint's manifest says.
struct Description {
  /// Keys: directory, skipped (why higher steps were not read), step, library, numerics_version,
  /// seed, pipeline_execution, hosts, replicas_per_host, sharding, bytes, tables, features, files,
  /// id_maps, tensors, blobs.
  Json own;

  /// The caller's JSON on one line. JSON that this library would not write, deeper than
  /// kMaxJsonDepth or with a key twice, is as the caller wrote it, without blanks.
  std::string user;

  /// Returns both as one JSON object on one line, whose last key is "user".
  std::string text() const;
};

/// `path` is the directory of a run, whose latest step is read, or of a step. Throws IoError,
/// DataLoss.
Description describe_checkpoint(const std::filesystem::path& path);

}  // namespace embertable::jobs
