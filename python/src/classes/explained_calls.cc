#include "python/src/classes/explained_calls.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

namespace embertable::python {
namespace {

// These live as long as the process.
PyObject* explain = nullptr;
std::unordered_map<PyObject*, PyObject*> constructors;  ///< `__init__` of each class, as bound

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

/// Returns a new object of a class, or null with an error set, as nanobind's own function does.
PyObject* make(PyObject* type, PyObject* const* arguments, std::size_t count, PyObject* names) {
  const auto found = constructors.find(type);
  nb::object looked_up;
  if (found == constructors.end()) looked_up = nb::steal(PyObject_GetAttrString(type, "__init__"));
  PyObject* const constructor = found == constructors.end() ? looked_up.ptr() : found->second;
  if (constructor == nullptr) return nullptr;
  nb::object made;
  try {
    made = nb::inst_alloc(type);
  } catch (nb::python_error& error) {
    error.restore();
    return nullptr;
  }
  const std::size_t all = count + (names == nullptr ? 0 : PyTuple_Size(names));
  std::array<PyObject*, 16> few;
  std::vector<PyObject*> many(all < few.size() ? 0 : all + 1);
  PyObject** const given = many.empty() ? few.data() : many.data();
  given[0] = made.ptr();
  std::copy_n(arguments, all, given + 1);
  const nb::object none = nb::steal(PyObject_Vectorcall(constructor, given, count + 1, names));
  return none.is_valid() ? made.release().ptr() : nullptr;
}

}  // namespace

PyObject* explained_call(PyObject* type, PyObject* const* arguments, std::size_t count,
                         PyObject* names) {
  const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(count));
  PyObject* const made = make(type, arguments, positional, names);
  if (made == nullptr && explain != nullptr && PyErr_ExceptionMatches(PyExc_TypeError))
    explain_error(type, arguments, positional, names);
  return made;
}

void bind_explained_calls(nb::module_& module) {
  module.def("_explain_with", [](nb::object function, const nb::dict& constructors_of_classes) {
    explain = function.release().ptr();
    for (const auto [type, constructor] : constructors_of_classes)
      constructors[nb::borrow(type).release().ptr()] = nb::borrow(constructor).release().ptr();
  });
}

}  // namespace embertable::python
