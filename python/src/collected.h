#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

namespace nb = nanobind;

/// Type slots with which the garbage collector finds, and clears, the Python references that a T
/// holds. T has `template <class Visit> void references(Visit visit)`, which calls
/// visit(nb::object&) for each reference that it alone owns.
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
    if (nb::inst_ready(self))
      nb::inst_ptr<T>(self)->references([](nb::object& reference) { reference.reset(); });
    return 0;
  }
  static inline PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                       {0, nullptr}};

  /// For types that must not outlive what they refer to: their references are found, but never
  /// cleared.
  static inline PyType_Slot seen[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                      {0, nullptr}};
};

}  // namespace embertable::python
