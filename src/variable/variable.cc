#include <fmt/format.h>

#include <utility>

#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"
#include "tensor/strides.h"
#include "variable/assignable.h"
#include "variable/variable_state.h"

namespace embertable {

Variable::Variable(Tensor value, std::string name) : state_(std::make_shared<State>()) {
  state_->name = std::move(name);
  state_->dtype = value.dtype();
  state_->shape = value.shape();
  state_->value = value.wrapped() ? value.copy() : value.packed();
  const Shape& shape = value.shape();
  if (shape.rank() > 0) state_->row_stride = packed_strides(shape, byte_width(value.dtype()))[0];
}

Variable Variable::over(VariableMemory memory, std::string name) {
  if (memory.shape.rank() < 1)
    throw ValueError(fmt::format("variable '{}': memory needs a shape of rank 1 at least, got {}",
                                 name, memory.shape.to_string()));
  Tensor::Strides strides = packed_strides(memory.shape, byte_width(memory.dtype));
  if (memory.row_stride < strides[0])
    throw ValueError(fmt::format("variable '{}': rows have {} bytes, got a stride of {}", name,
                                 strides[0], memory.row_stride));
  strides[0] = memory.row_stride;
  Variable variable;
  variable.state_ = std::make_shared<State>();
  State& state = *variable.state_;
  state.dtype = memory.dtype;
  state.shape = memory.shape;
  state.value =
      Tensor::wrap(memory.data, memory.dtype, memory.shape,
                   std::span(strides).first(memory.shape.dims().size()), std::move(memory.owner));
  if (memory.data == nullptr && memory.shape.num_elements() > 0)
    throw ValueError(fmt::format("variable '{}': memory of shape {} must have an address, got null",
                                 name, memory.shape.to_string()));
  state.name = std::move(name);
  state.in_place = static_cast<std::byte*>(memory.data);
  state.row_stride = memory.row_stride;
  state.assignable = memory.assignable;
  return variable;
}

Variable Variable::placeholder(DType dtype, const Shape& shape, std::string name) {
  Variable variable;
  variable.state_ = std::make_shared<State>();
  State& state = *variable.state_;
  state.dtype = dtype;
  state.shape = shape;
  state.value = Tensor::wrap(nullptr, dtype, shape, nullptr);
  state.name = std::move(name);
  state.assignable = false;
  state.placeholder = true;
  return variable;
}

const std::string& Variable::name() const noexcept { return state_->name; }
DType Variable::dtype() const noexcept { return state_->dtype; }
const Shape& Variable::shape() const noexcept { return state_->shape; }
bool Variable::assignable() const noexcept { return state_->assignable; }
bool Variable::has_value() const noexcept { return !state_->placeholder; }

Tensor Variable::value() const {
  if (state_->placeholder)
    throw StateError(fmt::format("variable '{}': is a placeholder, which has no value", name()));
  return state_->value;
}

const std::optional<SaveSliceInfo>& Variable::save_slice_info() const noexcept {
  return state_->save_slice_info;
}
void Variable::set_save_slice_info(std::optional<SaveSliceInfo> info) {
  state_->save_slice_info = std::move(info);
}

void Variable::assign(const Tensor& value) {
  if (value.dtype() != dtype() || !(value.shape() == shape()))
    throw ValueError(fmt::format("variable '{}': holds {} of shape {}, got {} of shape {}", name(),
                                 to_string(dtype()), shape().to_string(), to_string(value.dtype()),
                                 value.shape().to_string()));
  check_assignable("", *this);
  if (state_->in_place == nullptr) {
    state_->value = value.wrapped() ? value.copy() : value.packed();
    return;
  }
  const bool overlap = extent(value).overlaps(extent(state_->value));
  copy_elements(overlap ? value.copy() : value, state_->in_place, state_->value.byte_strides());
}

}  // namespace embertable
