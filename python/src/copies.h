#pragma once

#include <nanobind/nanobind.h>

#include "embertable/errors.h"

namespace embertable::python {

namespace nb = nanobind;

/// Makes pickle and copy refuse objects of a class: they raise TypeError with this text.
template <class Class>
void refuse_copies(Class& type, const char* text) {
  type.def("__reduce__", [text](nb::handle) -> nb::object { throw TypeError(text); });
}

/// Makes a value of readable fields pickle and copy. `fields` returns a tuple of a value's fields,
/// `made` a value of such a tuple.
template <class T, class Class, class Fields, class Made>
void bind_copies(Class& type, Fields fields, Made made) {
  type.def("__getstate__", [fields](const T& self) -> nb::tuple { return fields(self); });
  type.def("__setstate__", [made](T& self, const nb::tuple& state) { new (&self) T(made(state)); });
}

}  // namespace embertable::python
