// Binds variables in checkpoints.
#include <nanobind/stl/filesystem.h>

#include <string>
#include <utility>

#include "embertable/variables/variable_checkpoint.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/checkpoint.h"
#include "python/src/tensors.h"
#include "python/src/text_caster.h"
#include "python/src/variables.h"

namespace embertable::python {
namespace {

std::filesystem::path save_variables(nb::handle run, nb::handle step, nb::handle variables,
                                     nb::handle state) {
  const CheckpointVariables given = variables_of(variables);
  const CallerState kept = caller_state(state);
  const std::int64_t number = integer(step, "step");
  const auto open = open_run(run);
  return reading_variables([&] { return save_variables(*open, number, given, kept); });
}

SavedState restore_variables(const std::filesystem::path& path, nb::handle variables) {
  const CheckpointVariables given = variables_of(variables);
  return changing_variables([&] { return restore_variables(path, given); });
}

}  // namespace

std::optional<CheckpointVariable> variable_of(nb::handle value) {
  if (const ShardedVariable* variable = nullptr; nb::try_cast(value, variable) && variable)
    return *variable;
  if (const Variable* variable = nullptr; nb::try_cast(value, variable) && variable)
    return *variable;
  return std::nullopt;
}

CheckpointVariables variables_of(nb::handle value) {
  if (!PyDict_Check(value.ptr()))
    throw TypeError("variables must be a dict by name, got " + type_text(value));
  CheckpointVariables variables;
  for (const auto [key, variable] : nb::borrow<nb::dict>(value)) {
    if (!PyUnicode_Check(key.ptr()))
      throw TypeError("variables must have text as keys, got " + type_text(key));
    const std::string name = foreign_text(key, "the name of a variable");
    const auto found = variable_of(variable);
    if (!found)
      throw TypeError("'" + name + "' must be a Variable or a ShardedVariable, got " +
                      type_text(variable));
    variables.emplace(name, *found);
  }
  return variables;
}

void bind_variable_saving(nb::module_& module) {
  module.def("save_variables", save_variables, nb::arg("run"), nb::arg("step"),
             nb::arg("variables"), nb::arg("state") = nb::none(),
             "Saves variables by name and a CallerState as one step of a run, in one commit. Gives "
             "the step's\ndirectory.");
  module.def("restore_variables", restore_variables, nb::arg("path"), nb::arg("variables"),
             "Gives variables their saved values, whatever components they had. Everything is read "
             "before the\nfirst of them changes. Gives a SavedState without tensors.");
  module.def("saved_value", saved_value, nb::arg("path"), nb::arg("name"),
             "What a variable that is made later starts with: each component reads its own rows.");
}

}  // namespace embertable::python
