#pragma once

#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

namespace embertable::python {

namespace nb = nanobind;

/// Returns the items that a dict has now. Another thread may change the dict while they are used,
/// and so may code of Python's that their use runs; nanobind's own iterator would then give objects
/// that are freed.
inline std::vector<std::pair<nb::object, nb::object>> items_of(nb::handle dict) {
  const nb::object list = nb::steal(PyDict_Items(dict.ptr()));
  if (!list.is_valid()) throw nb::python_error();
  std::vector<std::pair<nb::object, nb::object>> items;
  for (const nb::handle pair : list) items.emplace_back(pair[0], pair[1]);
  return items;
}

}  // namespace embertable::python
