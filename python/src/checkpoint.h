#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "embertable/checkpoint.h"
#include "embertable/id_map.h"

namespace embertable::python {

namespace nb = nanobind;

/// None for nothing. Throws TypeError naming what is no CallerState, no array or no bytes.
CallerState caller_state(nb::handle value);

/// The CallerState of a checkpoint, in Python's terms.
nb::object to_python(CallerState state);

std::map<std::string, IdMap> id_maps_of(nb::handle value);

}  // namespace embertable::python
