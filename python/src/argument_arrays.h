#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace embertable::python {

namespace nb = nanobind;

/// Returns the NumPy array of an argument, as `numpy_array_of`. `what` names the argument, `rule`
/// says what it must be, "an array of numbers"; `hint` follows where lists are of uneven lengths.
/// Throws ValueError for those, StateError as `refuse_recorded`, and what NumPy throws.
nb::object array_of_argument(nb::handle argument, const std::string& what, const char* rule,
                             const char* hint = "");

/// Throws StateError, naming the argument, if a framework records the calling code: what cannot be
/// read stands for numbers that the recorded function gets with each of its calls. Called where
/// reading has failed, so that numbers that can be read cost nothing. Requires the GIL.
void refuse_recorded(nb::handle argument, const std::string& what);

}  // namespace embertable::python
