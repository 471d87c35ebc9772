#include "embertable/variables/sharded_variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/export_scope.h"
#include "embertable/variables/tensor_operators.h"
#include "tensor/concatenate.h"
#include "variable/assignable.h"
#include "variable/sharded_operations.h"

namespace embertable {
namespace {

bool same_tail(const Shape& a, const Shape& b) {
  return std::ranges::equal(a.dims().subspan(1), b.dims().subspan(1));
}

void check_are_variables(const std::string& name, const std::vector<Variable>& components) {
  const auto none = std::ranges::find_if(components, [](const Variable& v) { return !v; });
  if (components.empty() || none != components.end())
    throw TypeError(fmt::format(
        "sharded variable '{}': components should be a non-empty list of variables, got {}", name,
        components.empty() ? "none" : fmt::format("no variable at {}", none - components.begin())));
}

/// Makes each check for all components before the next one, as the original does.
void check_components(const std::string& name, const std::vector<Variable>& components) {
  check_are_variables(name, components);
  const Variable& first = components.front();
  const auto refuse = [&](std::size_t i, const std::string& what) {
    throw ValueError(
        fmt::format("sharded variable '{}': {} {}", name, component_text(i, components[i]), what));
  };
  for (std::size_t i = 0; i < components.size(); ++i)
    if (components[i].dtype() != first.dtype())
      refuse(i, fmt::format("must have the same dtype as component 0, {}, got {}",
                            to_string(first.dtype()), to_string(components[i].dtype())));
  for (std::size_t i = 0; i < components.size(); ++i)
    if (!components[i].has_value()) refuse(i, "must have a value, got a placeholder");
  for (std::size_t i = 0; i < components.size(); ++i)
    if (components[i].shape().rank() < 1) refuse(i, "must have an axis of rows, got shape ()");
  for (std::size_t i = 0; i < components.size(); ++i)
    if (!same_tail(components[i].shape(), first.shape()))
      refuse(i, fmt::format("must have the same shapes except for the first axis as component 0, "
                            "{}, got {}",
                            first.shape().to_string(), components[i].shape().to_string()));
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (components[i].save_slice_info())
      refuse(i, fmt::format("is part of '{}' already: `SaveSliceInfo` should not be set",
                            components[i].save_slice_info()->full_name));
    if (std::find(components.begin(), components.begin() + static_cast<std::ptrdiff_t>(i),
                  components[i]) != components.begin() + static_cast<std::ptrdiff_t>(i))
      refuse(i, "is there twice: `SaveSliceInfo` should not be set by another place");
  }
}

}  // namespace

ShardedVariable::ShardedVariable(std::vector<Variable> components, ShardedVariableOptions options) {
  check_components(options.name, components);
  auto state = std::make_shared<ShardedState>(std::move(components), std::move(options));
  std::vector<SaveSliceInfo> infos;
  for (std::size_t i = 0; i < state->components.size(); ++i) {
    std::vector<std::int64_t> offset(state->shape.dims().size());
    offset[0] = state->locator.offsets()[i];
    infos.push_back(
        {state->options.name, state->shape, std::move(offset), state->components[i].shape()});
  }
  for (std::size_t i = 0; i < infos.size(); ++i)  // nothing throws from here on
    state->components[i].set_save_slice_info(std::move(infos[i]));
  state_ = std::move(state);
}

ShardedVariable ShardedVariable::of(const Variable& variable) {
  const auto refuse = [&](const char* what) {
    throw ValueError(fmt::format("variable '{}': {}", variable.name(), what));
  };
  if (!variable.has_value()) refuse("must have a value, got a placeholder");
  if (variable.shape().rank() < 1) refuse("must have an axis of rows, got shape ()");
  return ShardedVariable(OneVariable{}, variable);
}

ShardedVariable::ShardedVariable(OneVariable /*tag*/, const Variable& variable)
    : state_(std::make_shared<ShardedState>(std::vector{variable},
                                            ShardedVariableOptions{.name = variable.name()})) {
  state_->one_variable = true;
}

const std::vector<Variable>& ShardedVariable::components() const noexcept {
  return state_->components;
}
const std::vector<Variable>& ShardedVariable::variables() const noexcept {
  return ExportScope::active() ? state_->exported : state_->components;
}
const std::string& ShardedVariable::name() const noexcept { return state_->options.name; }
DType ShardedVariable::dtype() const noexcept { return components().front().dtype(); }
const Shape& ShardedVariable::shape() const noexcept { return state_->shape; }
const std::shared_ptr<Executor>& ShardedVariable::executor() const noexcept {
  return state_->options.executor;
}
std::span<const std::int64_t> ShardedVariable::offsets() const noexcept {
  return state_->locator.offsets();
}

bool ShardedVariable::assignable() const noexcept {
  return std::ranges::all_of(components(), [](const Variable& v) { return v.assignable(); });
}

bool ShardedVariable::div_sharded() const noexcept { return state_->div_sharded(); }

bool ShardedVariable::same_structure(const ShardedVariable& other) const {
  return std::ranges::equal(components(), other.components(),
                            [](const Variable& a, const Variable& b) {
                              return a.dtype() == b.dtype() && a.shape() == b.shape();
                            });
}

Tensor ShardedVariable::value() const {
  std::vector<Tensor> pieces;
  for (const Variable& component : components())
    if (component.shape()[0] > 0) pieces.push_back(component.value());
  return pieces.empty() ? components().front().value() : concatenate(pieces, 0, executor().get());
}

Tensor ShardedVariable::value(DType dtype, bool as_reference) const {
  if (dtype != this->dtype())
    throw ValueError(fmt::format("{}Incompatible type conversion: it is {}, asked for as {}",
                                 state_->subject(), to_string(this->dtype()), to_string(dtype)));
  if (as_reference)
    throw NotImplemented(state_->subject() +
                         "does not convert to a reference; assign to it instead");
  return value();
}

Tensor ShardedVariable::at(std::span<const Index> parts) const {
  return sharded::at(*state_, parts);
}

Tensor ShardedVariable::sparse_read(const Tensor& indices) const {
  return sharded::sparse_read(*state_, indices);
}
void ShardedVariable::sparse_read(const Tensor& indices, std::span<std::byte> out) const {
  sharded::sparse_read(*state_, indices, out);
}

ShardedVariable& ShardedVariable::scatter(ScatterOperation op, const Tensor& indices,
                                          const Tensor& values) {
  sharded::scatter(*state_, op, indices, values);
  return *this;
}

// clang-format off
ShardedVariable& ShardedVariable::scatter_add(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kAdd, indices, values); }
ShardedVariable& ShardedVariable::scatter_sub(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kSub, indices, values); }
ShardedVariable& ShardedVariable::scatter_mul(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kMul, indices, values); }
ShardedVariable& ShardedVariable::scatter_div(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kDiv, indices, values); }
ShardedVariable& ShardedVariable::scatter_min(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kMin, indices, values); }
ShardedVariable& ShardedVariable::scatter_max(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kMax, indices, values); }
ShardedVariable& ShardedVariable::scatter_update(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kUpdate, indices, values); }
ShardedVariable& ShardedVariable::batch_scatter_update(const Tensor& indices, const Tensor& values) { return scatter(ScatterOperation::kUpdate, indices, values); }
// clang-format on

ShardedVariable& ShardedVariable::assign(const Tensor& value) {
  sharded::assign(*state_, value);
  return *this;
}
ShardedVariable& ShardedVariable::assign_add(const Tensor& value) {
  sharded::assign_by(*state_, ScatterOperation::kAdd, "assign_add", value);
  return *this;
}
ShardedVariable& ShardedVariable::assign_sub(const Tensor& value) {
  sharded::assign_by(*state_, ScatterOperation::kSub, "assign_sub", value);
  return *this;
}

Operand::Operand(const ShardedVariable& variable)
    : value_(variable.value()), executor_(variable.executor()) {}

}  // namespace embertable
