#include <fmt/format.h>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "sharded/element_type.h"
#include "sharded/row_operation.h"
#include "sharded/sharded_state.h"
#include "sharded/strides.h"

namespace embertable {
namespace {

/// Rows [first, first + rows) of what is packed or strided by rows.
Tensor rows_of(const Tensor& value, std::int64_t first, std::int64_t rows) {
  return value.view(first * value.byte_strides()[0], value.shape().with_leading(rows),
                    value.byte_strides());
}

/// The places' memory is written: it is that of components which may be.
std::byte* writable(const RowBlockPlace& place) { return const_cast<std::byte*>(place.data); }

}  // namespace

ShardedVariable& ShardedVariable::assign(const Tensor& value) {
  State& state = *state_;
  state.check_value("assign", value, state.shape[0]);
  const Tensor source = state.overlaps(value) ? value.copy() : value;
  const std::vector<RowBlockPlace> places =
      state.writable_places(std::vector<bool>(state.components.size(), true));
  Tensor::Strides strides = packed_strides(state.shape, byte_width(dtype()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    strides[0] = places[i].stride;
    copy_elements(rows_of(source, offsets()[i], places[i].rows), writable(places[i]), strides);
  }
  return *this;
}

void ShardedVariable::assign_by(ScatterOperation operation, const char* what, const Tensor& value) {
  State& state = *state_;
  state.check_value(what, value, state.shape[0]);
  if (dtype() == DType::kBool)
    throw ValueError(
        fmt::format("sharded variable '{}': {} takes numbers, not bool", name(), what));
  const FloatEnvironment environment;
  const Tensor source = state.overlaps(value) ? value.copy() : value.packed();
  const std::vector<RowBlockPlace> places =
      state.writable_places(std::vector<bool>(state.components.size(), true));
  const std::byte* from = source.data();
  for (const RowBlockPlace& place : places) {
    const bool packed = place.stride == state.row_bytes;
    const std::int64_t lines = packed ? 1 : place.rows;
    const std::int64_t bytes = packed ? place.rows * state.row_bytes : state.row_bytes;
    for (std::int64_t line = 0; bytes > 0 && line < lines; ++line, from += bytes)
      apply_to_line({operation, dtype()}, writable(place) + line * place.stride, from,
                    bytes / byte_width(dtype()));
  }
}

ShardedVariable& ShardedVariable::assign_add(const Tensor& value) {
  assign_by(ScatterOperation::kAdd, "assign_add", value);
  return *this;
}
ShardedVariable& ShardedVariable::assign_sub(const Tensor& value) {
  assign_by(ScatterOperation::kSub, "assign_sub", value);
  return *this;
}

}  // namespace embertable
