#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/manifest.h"
#include "checkpoint/run_directory.h"
#include "engine/setup.h"
#include "engine/tables.h"

namespace embertable::engine {

/// Returns the manifest of a checkpoint of this engine after `step` updates, without its files.
checkpoint::Manifest manifest_of(const Setup& setup, std::int64_t step);

/// Saves all tables as one step of a run and returns its directory. Throws as Embedding::save.
std::filesystem::path save_tables(const Setup& setup, const Tables& tables, std::int64_t step,
                                  const checkpoint::OpenRun& run, const CallerState& state,
                                  const std::map<std::string, IdMap>& id_maps);

/// Returns the hash of all tables, as Embedding::digest does.
std::string digest_of(const Tables& tables);

}  // namespace embertable::engine
