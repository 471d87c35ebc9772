#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "embertable/checkpoint.h"
#include "embertable/embedding.h"
#include "embertable/id_map.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns an empty state for None. Throws TypeError naming what is not a CallerState, an array or
/// bytes.
CallerState caller_state(nb::handle value);

/// Returns the CallerState of a checkpoint in Python's types.
nb::object to_python(const CallerState& state);

std::map<std::string, IdMap> id_maps_of(nb::handle value);

/// Returns the directory of a run's step; the path itself if `step` is None. Whoever opens it says
/// if it is not there: of several processes all do so together. Throws TypeError, ValueError.
std::filesystem::path run_or_step(const std::filesystem::path& path, nb::handle step);

/// Returns the run of a CheckpointRun that is not closed, or opens the run of a directory. Throws
/// TypeError, StateError, IoError.
std::shared_ptr<CheckpointRun> open_run(nb::handle run);

/// Reads names of tables; None means all. Throws TypeError.
RestoreOptions restore_options(nb::handle tables, bool partial, nb::handle grow);

}  // namespace embertable::python
