#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/variables/variable_checkpoint.h"

namespace embertable::python {

namespace nb = nanobind;

/// Returns what Python's brackets after a variable contain. Throws TypeError, IndexError,
/// ValueError as Index does.
std::vector<Index> index_parts(nb::handle key, const ShardedVariable& variable);

/// Returns a Variable or a ShardedVariable; empty for anything else.
std::optional<CheckpointVariable> variable_of(nb::handle value);

/// Returns the variables of a dict, by name. Throws TypeError.
CheckpointVariables variables_of(nb::handle value);

// Methods of the class that sharded_operators.cc adds.
void bind_operators_of(nb::class_<ShardedVariable>& type);

}  // namespace embertable::python
