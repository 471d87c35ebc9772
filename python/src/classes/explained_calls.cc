#include "python/src/classes/explained_calls.h"

namespace embertable::python {
namespace {

/// A class without type slots: its function that makes objects is nanobind's own.
struct PlainClass {};

vectorcallfunc usual_call = nullptr;
PyObject* explain = nullptr;  // lives as long as the process

/// Replaces the error that is set by one with the message that `explain` returns, if it returns
/// one.
void explain_error(nb::handle type, PyObject* const* arguments, std::size_t count,
                   nb::handle names) {
  nb::python_error error;
  // One that has passed through a function of the caller's is not about these arguments.
  if (!error.type().is(PyExc_TypeError) || error.traceback().is_valid()) return error.restore();
  try {
    nb::list given;
    for (std::size_t i = 0; i < count; ++i) given.append(nb::handle(arguments[i]));
    nb::dict named;
    if (names.is_valid())
      for (const nb::handle name : names) named[name] = nb::handle(arguments[count++]);
    const nb::object message =
        nb::handle(explain)(type, nb::str(error.value()), nb::tuple(given), named);
    if (message.is_none()) {
      error.restore();
    } else {
      PyErr_SetObject(PyExc_TypeError, message.ptr());
    }
  } catch (nb::python_error& other) {
    other.restore();
  }
}

}  // namespace

PyObject* explained_call(PyObject* type, PyObject* const* arguments, std::size_t count,
                         PyObject* names) {
  PyObject* const made = usual_call(type, arguments, count, names);
  if (made == nullptr && explain != nullptr && PyErr_ExceptionMatches(PyExc_TypeError))
    explain_error(type, arguments, static_cast<std::size_t>(PyVectorcall_NARGS(count)), names);
  return made;
}

void bind_explained_calls(nb::module_& module) {
  const nb::class_<PlainClass> plain(module, "_Plain");
  usual_call = PyVectorcall_Function(plain.ptr());
  module.def("_explain_with", [](nb::object function) { explain = function.release().ptr(); });
}

}  // namespace embertable::python
