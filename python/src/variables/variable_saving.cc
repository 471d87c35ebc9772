// Binds variables in checkpoints.
#include <nanobind/stl/filesystem.h>

#include <string>
#include <utility>

#include "embertable/variables/variable_checkpoint.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/checkpoint.h"
#include "python/src/dict_items.h"
#include "python/src/text_caster.h"
#include "python/src/variables/tensors.h"
#include "python/src/variables/variables.h"

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

namespace {

void collect_objects(nb::handle value, std::vector<std::string>& path, VariablesOfObjects& all) {
  for (const auto& [key, item] : items_of(value)) {
    if (!PyUnicode_Check(key.ptr()))
      throw TypeError("variables must have text as keys, got " + type_text(key));
    path.push_back(foreign_text(key, "the name of a variable"));
    if (PyDict_Check(item.ptr())) {
      if (path.size() > 256) throw ValueError("variables must be a tree of at most 256 levels");
      collect_objects(item, path, all);
    } else if (const auto found = variable_of(item)) {
      all.emplace(path, *found);
    } else {
      throw TypeError("'" + path.back() + "' must be a Variable or a ShardedVariable, got " +
                      type_text(item));
    }
    path.pop_back();
  }
}

}  // namespace

VariablesOfObjects variables_of_objects(nb::handle value) {
  if (!PyDict_Check(value.ptr()))
    throw TypeError("variables must be a dict by name, got " + type_text(value));
  VariablesOfObjects all;
  std::vector<std::string> path;
  collect_objects(value, path, all);
  return all;
}

CheckpointVariables variables_of(nb::handle value) {
  if (!PyDict_Check(value.ptr()))
    throw TypeError("variables must be a dict by name, got " + type_text(value));
  CheckpointVariables variables;
  for (const auto& [key, variable] : items_of(value)) {
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
  module.def(
      "save_variables", save_variables, nb::arg("run"), nb::arg("step"), nb::arg("variables"),
      nb::arg("state") = nb::none(),
      R"(Saves variables and a CallerState as one step of a run, in one commit. Gives the step's directory.

run: the run's directory, or a CheckpointRun; step: its number; variables: Variables and ShardedVariables by
name; state: a CallerState. Raises RuntimeError if the step is saved already, TypeError, ValueError, OSError.

>>> saved = embertable.save_variables(directory + "/run", 1, {"v": embertable.Variable([1.0, 2.0])})
>>> embertable.find_checkpoint(saved) == saved
True)");
  module.def(
      "restore_variables", restore_variables, nb::arg("path"), nb::arg("variables"),
      R"(Gives variables their saved values, whatever components they had. Everything is read before the first of them
changes. Gives a SavedState without tensors.

path: a step's directory, or a run's; variables: by name. Raises KeyError, ValueError for what does not fit,
RuntimeError for a read-only variable, OSError, DataLossError.

>>> saved = embertable.save_variables(directory + "/run", 1, {"v": embertable.Variable([1.0, 2.0])})
>>> variable = embertable.Variable([0.0, 0.0])
>>> embertable.restore_variables(saved, {"v": variable}).step
1
>>> variable.numpy().tolist()
[1.0, 2.0])");
  module.def(
      "saved_value", saved_value, nb::arg("path"), nb::arg("name"),
      R"(Gives what a variable that is made later starts with: each component reads its own rows.

path: a step's directory, or a run's; name: of the saved variable. Raises KeyError, OSError, DataLossError.

>>> saved = embertable.save_variables(directory + "/run", 1, {"v": embertable.Variable([[1.0], [2.0]])})
>>> embertable.create_on_hosts(embertable.saved_value(saved, "v"), 2, "w").numpy().tolist()
[[1.0], [2.0]])");
}

}  // namespace embertable::python
