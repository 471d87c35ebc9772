#include "python/src/tracing.h"

#include <nanobind/nanobind.h>

#include "embertable/errors.h"
#include "python/src/arguments.h"

namespace embertable::python {
namespace {

/// True for a module that the program has imported.
bool is_loaded(const char* module) {
  PyObject* const modules = PyImport_GetModuleDict();  // borrowed
  return PyDict_GetItemString(modules, module) != nullptr;
}

}  // namespace

void refuse_recording(const char* what) {
  if (!is_loaded("tensorflow") && !is_loaded("jax") && !is_loaded("torch")) return;
  static PyObject* ask = nullptr;  // no initializer: an import that waits for the GIL would hold it
  if (!ask)
    ask = nb::object(nb::module_::import_("embertable._recording").attr("reason_to_refuse"))
              .release()
              .ptr();
  const nb::object reason = nb::handle(ask)(what);
  if (!reason.is_none()) throw StateError(text(reason));
}

}  // namespace embertable::python
