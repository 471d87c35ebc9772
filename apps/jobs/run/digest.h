#pragma once

#include <filesystem>
#include <string>

#include "apps/jobs/spec/model.h"
#include "embertable/embedding.h"

namespace embertable::jobs {

/// One hash of all tables and slots and of the model's own parameters ("model.*"), 32 hexadecimal
/// digits; without such parameters that of `Embedding::digest`.
std::string run_digest(const Embedding& engine, const Model& model);

/// The same of what is saved, a run's directory or a step's. Throws IoError, DataLoss.
std::string saved_digest(const std::filesystem::path& path);

}  // namespace embertable::jobs
