#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "embertable/tensorflow/sharded_bundle.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/variables/variable_checkpoint.h"

namespace embertable::python {

namespace nb = nanobind;

/// A variable's name in messages, "sharded variable 'w'", and its shape.
struct IndexedVariable {
  std::string subject;
  Shape shape;
};

/// Returns what Python's brackets after a variable contain. Throws TypeError, IndexError,
/// ValueError as Index does.
std::vector<Index> index_parts(nb::handle key, const IndexedVariable& variable);

/// Returns the Python object of a variable: the one that the program has, if one exists.
nb::object object_of(const Variable& variable);

/// Returns a Variable or a ShardedVariable; empty for anything else.
std::optional<CheckpointVariable> variable_of(nb::handle value);

/// Returns the variables of a dict, by name. Throws TypeError.
CheckpointVariables variables_of(nb::handle value);

/// Returns the variables of a dict, by their paths: a dict within it is an object with attributes.
/// Throws TypeError.
VariablesOfObjects variables_of_objects(nb::handle value);

// Methods of the classes that sharded_operators.cc adds. A Variable is compared by identity.
void bind_operators_of(nb::class_<ShardedVariable>& type);
void bind_operators_of(nb::class_<Variable>& type);

}  // namespace embertable::python
