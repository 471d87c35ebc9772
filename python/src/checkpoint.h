#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>

#include "embertable/checkpoint.h"
#include "embertable/embedding.h"
#include "embertable/id_map.h"

namespace embertable::python {

namespace nb = nanobind;

/// None for nothing. Throws TypeError naming what is no CallerState, no array or no bytes.
CallerState caller_state(nb::handle value);

/// The CallerState of a checkpoint, in Python's terms.
nb::object to_python(const CallerState& state);

std::map<std::string, IdMap> id_maps_of(nb::handle value);

/// The run of a CheckpointRun that is not closed, or that of a directory, opened. Throws TypeError,
/// StateError, IoError.
std::shared_ptr<CheckpointRun> open_run(nb::handle run);

/// Names of tables, None for all. Throws TypeError.
RestoreOptions restore_options(nb::handle tables, bool partial);

}  // namespace embertable::python
