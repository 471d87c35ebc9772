#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

#include "embertable/shape.h"

namespace embertable::python {

namespace nb = nanobind;

// Conversions of Python numbers to C++, none of them silent. Each throws TypeError naming the
// argument, and ValueError for a number that does not fit.

/// Returns an int, or what acts as one (numpy.int64); refuses bool, float and text.
std::int64_t integer(nb::handle value, const char* what);
std::int32_t integer32(nb::handle value, const char* what);

/// Returns an int >= 0.
std::uint64_t seed_of(nb::handle value);

/// Returns an int or a float, or what acts as one.
double number(nb::handle value, const char* what);

/// Returns str(value).
std::string text(nb::handle value);

/// Returns the name of a value's type for messages.
std::string type_text(nb::handle value);

/// Converts None to unknown rank, and a sequence of dims, in which None is an unknown dim.
Shape shape(nb::handle value, const char* what);

/// Converts back: to None, or a tuple.
nb::object to_python(const Shape& shape);

}  // namespace embertable::python
