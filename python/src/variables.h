#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "embertable/sharded_variable.h"
#include "embertable/tensor_index.h"

namespace embertable::python {

namespace nb = nanobind;

/// What stands in Python's brackets. Throws TypeError, IndexError, ValueError as Index does.
std::vector<Index> index_parts(nb::handle key);

// What sharded_operators.cc has of the class.
void bind_operators_of(nb::class_<ShardedVariable>& type);

}  // namespace embertable::python
