#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/tensor_index.h"
#include "embertable/variables/variable_checkpoint.h"

namespace embertable::python {

namespace nb = nanobind;

/// What stands in Python's brackets behind a variable. Throws TypeError, IndexError, ValueError as
/// Index does.
std::vector<Index> index_parts(nb::handle key, const ShardedVariable& variable);

/// A Variable or a ShardedVariable; nothing for anything else.
std::optional<CheckpointVariable> variable_of(nb::handle value);

/// A dict of them by name. Throws TypeError.
CheckpointVariables variables_of(nb::handle value);

// What sharded_operators.cc has of the class.
void bind_operators_of(nb::class_<ShardedVariable>& type);

}  // namespace embertable::python
