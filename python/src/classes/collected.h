#pragma once

#include <nanobind/nanobind.h>

#include "python/src/classes/explained_calls.h"

namespace embertable::python {

namespace nb = nanobind;

/// Type slots with which the garbage collector finds, and clears, the Python references that a T
/// holds. T has `template <class Visit> void references(Visit visit)`, which calls
/// visit(nb::object&) for each reference that it alone owns. If it has `functions` of the same
/// form, those alone are cleared: an engine's C++ side holds the functions of optimizers and
/// initializers, too, which these clear themselves while something leads the collector to them.
template <class T>
struct Collected {
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    int stopped = 0;
    nb::inst_ptr<T>(self)->references([&](nb::object& reference) {
      if (stopped == 0 && reference.is_valid()) stopped = visit(reference.ptr(), arg);
    });
    return stopped;
  }
  static int clear(PyObject* self) {
    if (!nb::inst_ready(self)) return 0;
    const auto reset = [](nb::object& reference) { reference.reset(); };
    T& held = *nb::inst_ptr<T>(self);
    if constexpr (requires { held.functions(reset); }) {
      held.functions(reset);
    } else {
      held.references(reset);
    }
    return 0;
  }
  static inline PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                       explained_slots[0],
                                       {0, nullptr}};

  /// For types that must not outlive what they refer to, and for parts of an engine's
  /// configuration: their references are found, but never cleared.
  static inline PyType_Slot seen[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, explained_slots[0], {0, nullptr}};
};

}  // namespace embertable::python
