#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

namespace nb = nanobind;

// Each function adds the classes and functions of one concept to the module, in this order.
void bind_errors(nb::module_& module);
void bind_optimizer(nb::module_& module);
void bind_custom_tile(nb::module_& module);
void bind_initializer(nb::module_& module);
void bind_config(nb::module_& module);
void bind_exchange(nb::module_& module);
void bind_strategy(nb::module_& module);
void bind_trees(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_id_map(nb::module_& module);
void bind_checkpoint(nb::module_& module);
void bind_saving(nb::module_& module);
void bind_reports(nb::module_& module);
void bind_messages(nb::module_& module);
void bind_embedding(nb::module_& module);
void bind_replica(nb::module_& module);
void bind_row_gradients(nb::module_& module);
void bind_serving(nb::module_& module);
void bind_direct(nb::module_& module);
void bind_interleave(nb::module_& module);
void bind_step_descriptor(nb::module_& module);
void bind_interception(nb::module_& module);
void bind_v1(nb::module_& module);
void bind_variables(nb::module_& module);
void bind_variable_creation(nb::module_& module);
void bind_variable_saving(nb::module_& module);
void bind_tensor_bundle_reader(nb::module_& module);
void bind_tensor_bundle_writer(nb::module_& module);
void bind_lookups(nb::module_& module);
void bind_conversion(nb::module_& module);
void bind_jobs(nb::module_& module);
void bind_runs(nb::module_& module);

}  // namespace embertable::python
