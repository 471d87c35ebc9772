// The extension module embertable._core.
#include "embertable/version.h"
#include "python/src/bindings.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/gil.h"

NB_MODULE(core_of_main_interpreter, module) {
  using namespace embertable::python;  // NOLINT: the module's own names
  // A program may still hold objects when the interpreter ends; these are not leaks of the module.
  nanobind::set_leak_warnings(false);

  module.attr("__version__") = embertable::kVersion;
  module.attr("numerics_version") = embertable::kNumericsVersion;
  watch_for_the_end();
  bind_explained_calls(module);
  bind_errors(module);
  bind_optimizer(module);
  bind_custom_tile(module);
  bind_initializer(module);
  bind_config(module);
  bind_exchange(module);
  bind_strategy(module);
  bind_trees(module);
  bind_batch(module);
  bind_id_map(module);
  bind_checkpoint(module);
  bind_saving(module);
  bind_reports(module);
  bind_messages(module);
  bind_embedding(module);
  bind_replica(module);
  bind_row_gradients(module);
  bind_serving(module);
  bind_direct(module);
  bind_interleave(module);
  bind_step_descriptor(module);
  bind_interception(module);
  bind_v1(module);
  bind_variables(module);
  bind_variable_creation(module);
  bind_variable_saving(module);
  bind_tensor_bundle_reader(module);
  bind_tensor_bundle_writer(module);
  bind_lookups(module);
  bind_conversion(module);
  bind_jobs(module);
  bind_runs(module);
}

/// The init function of embertable._core. Types belong to one interpreter, and nanobind makes them
/// anew for each that imports them, under the first one's objects.
extern "C" NB_EXPORT PyObject* PyInit__core();
extern "C" PyObject* PyInit__core() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)  // the main one
    return PyInit_core_of_main_interpreter();
  PyErr_SetString(PyExc_ImportError, "embertable cannot be imported in a subinterpreter");
  return nullptr;
}
