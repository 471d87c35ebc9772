#pragma once

#include <cstddef>
#include <span>

#include "embertable/variables/tensor_index.h"
#include "variable/sharded_state.h"

// The work of a ShardedVariable's methods, which document results and errors.
namespace embertable::sharded {

Tensor at(const ShardedState& state, std::span<const Index> parts);

Tensor sparse_read(const ShardedState& state, const Tensor& indices);
void sparse_read(const ShardedState& state, const Tensor& indices, std::span<std::byte> out);

void scatter(ShardedState& state, ScatterOperation op, const Tensor& indices, const Tensor& values);

void assign(ShardedState& state, const Tensor& value);

/// Sets each element x to x (op) that of the value. `operation` names it in messages.
void assign_by(ShardedState& state, ScatterOperation op, const char* operation,
               const Tensor& value);

}  // namespace embertable::sharded
