#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "embertable/shape.h"

namespace embertable::python {

namespace nb = nanobind;

// Python numbers as C++ has them, never by way of a silent conversion. Each throws TypeError naming
// what it is about, and ValueError for a number that does not fit.

/// An int, or what counts as one (numpy.int64); no bool, float or text.
std::int64_t integer(nb::handle value, const char* what);
std::int32_t integer32(nb::handle value, const char* what);

/// An int >= 0.
std::uint64_t seed_of(nb::handle value);

/// An int or a float, or what counts as one.
double number(nb::handle value, const char* what);

/// str(value).
std::string text(nb::handle value);

/// The name of a value's type, as messages give it.
std::string type_text(nb::handle value);

/// None for unknown rank, else a sequence of dims of which None is an unknown one.
Shape shape(nb::handle value, const char* what);

/// The same in Python: None, or a tuple.
nb::object to_python(const Shape& shape);

}  // namespace embertable::python
