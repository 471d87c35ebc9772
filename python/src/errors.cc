// Binds the classes of embertable/errors.h.
#include "embertable/errors.h"

#include <nanobind/stl/string.h>

#include "python/src/bindings.h"

namespace embertable::python {
namespace {

PyObject* data_error_type = nullptr;  // these live as long as the process
PyObject* data_loss_type = nullptr;

nb::object or_none(std::int64_t value) {
  if (value < 0) return nb::none();
  return nb::int_(value);
}

void raise_data_error(const DataError& error) {
  const nb::object raised = nb::borrow(data_error_type)(error.what());
  const BatchPosition& where = error.where();
  raised.attr("feature") = where.feature;
  raised.attr("replica") = or_none(where.replica);
  raised.attr("sample") = or_none(where.sample);
  raised.attr("position") = or_none(where.position);
  PyErr_SetObject(data_error_type, raised.ptr());
}

/// Sets the Python error that corresponds to a C++ one, the most derived class first; passes other
/// exceptions on to the next translator.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const DataError& error) {
    raise_data_error(error);
  } catch (const ValueError& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const TypeError& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const IndexError& error) {
    PyErr_SetString(PyExc_IndexError, error.what());
  } catch (const KeyError& error) {
    PyErr_SetString(PyExc_KeyError, error.what());
  } catch (const StateError& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const NotImplemented& error) {
    PyErr_SetString(PyExc_NotImplementedError, error.what());
  } catch (const DataLoss& error) {
    PyErr_SetString(data_loss_type, error.what());
  } catch (const IoError& error) {
    PyErr_SetString(PyExc_OSError, error.what());
  }
}

PyObject* new_error(nb::module_& module, const char* name, const char* doc, PyObject* base,
                    const nb::dict& members) {
  const std::string full_name = std::string("embertable.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base, members.ptr());
  if (!type) throw nb::python_error();
  module.attr(name) = nb::handle(type);
  return type;
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::dict nowhere;
  for (const char* field : {"feature", "replica", "sample", "position"})
    nowhere[field] = nb::none();
  data_error_type =
      new_error(module, "DataError",
                "The contents of a batch are wrong: an id, an index, a split.\n\n"
                "feature is the path of the feature, replica, sample (output row) and position\n"
                "(index into the feature's values, indices or splits) count from 0; None does not "
                "apply.",
                PyExc_ValueError, nowhere);
  data_loss_type =
      new_error(module, "DataLossError", "Stored data fails its checksum or contradicts itself.",
                PyExc_OSError, nb::dict());
  nb::register_exception_translator(translate);
}

}  // namespace embertable::python
