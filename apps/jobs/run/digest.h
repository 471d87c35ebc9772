#pragma once

#include <filesystem>
#include <string>

#include "apps/jobs/spec/model.h"
#include "embertable/embedding.h"

namespace embertable::jobs {

/// Returns one hash of all tables and slots and of the model's own parameters ("model.*"), 32
/// hexadecimal digits. Without such parameters it is that of `Embedding::digest`.
std::string run_digest(const Embedding& engine, const Model& model);

/// Does the same for a saved run or step, given its directory. Throws IoError, DataLoss.
std::string saved_digest(const std::filesystem::path& path);

}  // namespace embertable::jobs
