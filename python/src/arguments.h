#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <string_view>

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

/// Returns whether a value is a str or bytes.
bool is_text(nb::handle value);

/// Returns str(value), for messages.
std::string text(nb::handle value);

/// Returns a text in UTF-8. Throws TypeError for what is no text, ValueError for a surrogate, which
/// UTF-8 does not have.
std::string utf8(nb::handle value, const std::string& what);

/// Does the same for names and keys that other programs have written: surrogates become the bytes
/// from which the conversion to Python has made them.
std::string foreign_text(nb::handle value, const std::string& what);

/// Converts bytes to Python: those that are no UTF-8 become surrogates, as os.fsdecode makes them.
nb::object decoded(std::string_view bytes);

/// Converts a message to Python: bytes that are no UTF-8 are shown as \\xff.
nb::object readable(std::string_view message);

/// Returns the name of a value's type for messages.
std::string type_text(nb::handle value);

/// Converts None to unknown rank, and a sequence of dims, in which None is an unknown dim.
Shape shape(nb::handle value, const char* what);

/// Converts back: to None, or a tuple.
nb::object to_python(const Shape& shape);

}  // namespace embertable::python
