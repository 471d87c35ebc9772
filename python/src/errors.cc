// Binds the classes of embertable/errors.h.
#include "embertable/errors.h"

#include <nanobind/stl/vector.h>

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/did_you_mean.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/errors.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

PyObject* data_error_type = nullptr;  // these live as long as the process
PyObject* data_loss_type = nullptr;
PyObject* given_up = nullptr;

nb::object or_none(std::int64_t value) {
  if (value < 0) return nb::none();
  return nb::int_(value);
}

void raise_data_error(const DataError& error) {
  const nb::object raised = nb::borrow(data_error_type)(readable(error.what()));
  const BatchPosition& where = error.where();
  raised.attr("feature") = where.feature;
  raised.attr("replica") = or_none(where.replica);
  raised.attr("sample") = or_none(where.sample);
  raised.attr("position") = or_none(where.position);
  PyErr_SetObject(data_error_type, raised.ptr());
}

void raise(PyObject* type, const std::exception& error) {
  PyErr_SetObject(type, readable(error.what()).ptr());
}

/// Sets the Python error that corresponds to a C++ one, the most derived class first; passes other
/// exceptions on to the next translator.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const RaisedError& error) {
    error.set();
  } catch (const DataError& error) {
    raise_data_error(error);
  } catch (const ValueError& error) {
    raise(PyExc_ValueError, error);
  } catch (const TypeError& error) {
    raise(PyExc_TypeError, error);
  } catch (const IndexError& error) {
    raise(PyExc_IndexError, error);
  } catch (const KeyError& error) {
    raise(PyExc_KeyError, error);
  } catch (const GivenUp& error) {
    PyErr_SetObject(given_up, to_python(error).ptr());
  } catch (const StateError& error) {
    raise(PyExc_RuntimeError, error);
  } catch (const NotImplemented& error) {
    raise(PyExc_NotImplementedError, error);
  } catch (const DataLoss& error) {
    raise(data_loss_type, error);
  } catch (const NotFound& error) {
    raise(PyExc_FileNotFoundError, error);
  } catch (const IoError& error) {
    raise(PyExc_OSError, error);
  } catch (const std::filesystem::filesystem_error& error) {
    raise(PyExc_OSError, error);
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

/// Adds what makes GivenUp(host, reason): its arguments are its fields.
void bind_given_up(nb::module_& module) {
  nb::dict members;
  members["host"] = members["reason"] = nb::none();  // until __init__ sets them
  members["__init__"] = nb::cpp_function(
      [](nb::handle self, nb::handle host, nb::handle reason) {
        self.attr("host") = integer32(host, "GivenUp: host");
        self.attr("reason") = readable(utf8(reason, "GivenUp: reason"));
      },
      nb::name("__init__"), nb::is_method(), nb::arg("host"), nb::arg("reason"));
  members["__str__"] = nb::cpp_function(
      [](nb::handle self) {
        return "host " + text(self.attr("host")) + ": " + text(self.attr("reason"));
      },
      nb::name("__str__"), nb::is_method());
  given_up = new_error(module, "GivenUp",
                       "Another host has given up: an echo of that host's error.\n\n"
                       "host is its number, of several the first; reason is what it said.",
                       PyExc_RuntimeError, members);
}

}  // namespace

nb::handle given_up_type() noexcept { return given_up; }

GivenUp given_up_of(nb::handle value, const std::string& what) {
  if (!nb::isinstance(value, given_up_type()))
    throw TypeError(what + " must be a GivenUp, got " + type_text(value));
  return {integer32(value.attr("host"), "GivenUp: host"), text(value.attr("reason"))};
}

nb::object to_python(const GivenUp& error) {
  return given_up_type()(error.host(), readable(error.reason()));
}

void bind_errors(nb::module_& module) {
  module.def("_name_hint", [](const std::string& name, const std::vector<std::string>& known) {
    return name_hint(name, std::vector<std::string_view>(known.begin(), known.end()));
  });
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
  bind_given_up(module);
  nb::register_exception_translator(translate);
}

}  // namespace embertable::python
