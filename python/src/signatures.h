#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace embertable::python {

namespace nb = nanobind;

/// Returns whether a function takes these arguments, by its signature; nothing for one that says
/// nothing of its arguments.
std::optional<bool> can_be_called(nb::handle function, const nb::tuple& arguments,
                                  const nb::dict& keywords = nb::dict());

}  // namespace embertable::python
