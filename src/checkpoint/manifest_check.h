#pragma once

#include <filesystem>

#include "checkpoint/manifest.h"

namespace embertable::checkpoint {

/// Throws DataLoss naming `path`, the place and the rule unless the parts of a manifest agree:
/// names are unique, files have safe names and hold what their kind says, and the files of each
/// table make up its rows, each row once.
void check_manifest(const Manifest& manifest, const std::filesystem::path& path);

/// Returns the tensors that a file of these rows holds: the parameters, then the slots in order.
std::vector<StoredTensor> table_tensors(const SavedTable& table, std::int64_t rows);

}  // namespace embertable::checkpoint
