#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

namespace nb = nanobind;

/// Makes an object of a bound class. Where its arguments do not fit, the error says which one, and
/// why, instead of listing the types of all. Calls that fit cost what they cost without it.
PyObject* explained_call(PyObject* type, PyObject* const* arguments, std::size_t count,
                         PyObject* names);

#if !defined(Py_tp_vectorcall)
#define Py_tp_vectorcall 82  // CPython has it from 3.14 on, nanobind in all versions
#endif

/// The type slots of a class that has no others.
inline PyType_Slot explained_slots[] = {{Py_tp_vectorcall, reinterpret_cast<void*>(explained_call)},
                                        {0, nullptr}};

/// Adds `_explain_with(function, constructors)` to the module. The function is called with the
/// class, the message, the arguments and the keywords of a call that failed, and returns the
/// message to raise, or None. `constructors` has `__init__` of each class, before it is replaced.
void bind_explained_calls(nb::module_& module);

}  // namespace embertable::python
