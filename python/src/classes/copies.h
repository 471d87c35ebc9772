#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

namespace nb = nanobind;

/// Makes a value of readable fields pickle and copy. `fields` returns a tuple of a value's fields,
/// `made` a value of such a tuple.
template <class T, class Class, class Fields, class Made>
void bind_copies(Class& type, Fields fields, Made made) {
  type.def("__getstate__", [fields](const T& self) -> nb::tuple { return fields(self); });
  type.def("__setstate__", [made](T& self, const nb::tuple& state) { new (&self) T(made(state)); });
}

}  // namespace embertable::python
