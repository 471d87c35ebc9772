#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/run_directory.h"
#include "embertable/checkpoint.h"
#include "embertable/id_map.h"
#include "engine/setup/setup.h"
#include "engine/tables.h"

namespace embertable::engine {

/// The run that a save goes to. `opened` is null on other hosts than the first.
struct RunToSave {
  std::filesystem::path directory;
  const checkpoint::OpenRun* opened = nullptr;
};

/// Saves all tables as one step of a run and returns its directory. Host 0 makes the step, and all
/// hosts write their shards into it. Throws as Embedding::save.
std::filesystem::path save_tables(const Setup& setup, const Tables& tables, std::int64_t step,
                                  const RunToSave& run, const CallerState& state,
                                  const std::map<std::string, IdMap>& id_maps);

/// Returns the hash of all tables, as Embedding::digest does.
std::string digest_of(HostGroup& hosts, const Tables& tables);

}  // namespace embertable::engine
