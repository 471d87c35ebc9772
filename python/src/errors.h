#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "embertable/exchange.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns the class embertable.GivenUp.
nb::handle given_up_type() noexcept;

/// Convert an exception of that class, both ways. The first throws TypeError naming `what` for
/// another object.
GivenUp given_up_of(nb::handle value, const std::string& what);
nb::object to_python(const GivenUp& error);

}  // namespace embertable::python
