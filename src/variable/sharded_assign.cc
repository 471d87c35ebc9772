#include <fmt/format.h>

#include <algorithm>

#include "embertable/errors.h"
#include "tensor/element_type.h"
#include "tensor/ranges.h"
#include "tensor/strides.h"
#include "variable/row_operation.h"
#include "variable/sharded_operations.h"

namespace embertable::sharded {
namespace {

/// Returns rows [first, first + rows) of a value that is packed or strided by rows.
Tensor rows_of(const Tensor& value, std::int64_t first, std::int64_t rows) {
  return value.view(first * value.byte_strides()[0], value.shape().with_leading(rows),
                    value.byte_strides());
}

/// Calls change(to, stride, first, rows) on the workers of the executor until it was called for all
/// rows: with rows that lie in one component, which are rows [first, first + rows) of the whole.
/// Throws as writable_places.
template <class Change>
void for_rows(ShardedState& state, Change change) {
  const std::vector<RowBlockPlace> places =
      state.writable_places(std::vector<bool>(state.components.size(), true));
  if (state.row_bytes == 0) return;
  const RowLocator& locator = state.locator;
  const auto change_range = [&](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const std::size_t b = locator.block(first);
      const std::int64_t begin = locator.offsets()[b];
      const std::int64_t end = std::min(last, locator.offsets()[b + 1]);
      const std::int64_t stride = places[b].stride;
      change(const_cast<std::byte*>(places[b].data) + (first - begin) * stride, stride, first,
             end - first);
      first = end;
    }
  };
  for_ranges(locator.rows(), state.row_bytes, state.executor(), change_range);
}

}  // namespace

void assign(ShardedState& state, const Tensor& value) {
  state.check_value("assign", value, state.shape[0]);
  const Tensor source = state.overlaps(value) ? value.copy() : value;
  const Tensor::Strides packed = packed_strides(state.shape, byte_width(state.dtype()));
  for_rows(state, [&](std::byte* to, std::int64_t stride, std::int64_t first, std::int64_t rows) {
    Tensor::Strides strides = packed;
    strides[0] = stride;
    copy_elements(rows_of(source, first, rows), to, strides);
  });
}

void assign_by(ShardedState& state, ScatterOperation op, const char* operation,
               const Tensor& value) {
  state.check_value(operation, value, state.shape[0]);
  if (state.dtype() == DType::kBool)
    throw ValueError(fmt::format("{}{} takes numbers, not bool", state.subject(), operation));
  const Tensor source = state.overlaps(value) ? value.copy() : value.packed();
  const LineOperation line = {op, state.dtype()};
  const std::int64_t width = state.row_bytes / byte_width(state.dtype());
  for_rows(state, [&](std::byte* to, std::int64_t stride, std::int64_t first, std::int64_t rows) {
    const std::byte* from = source.data() + first * state.row_bytes;
    if (stride == state.row_bytes) return apply_to_line(line, to, from, rows * width);
    for (std::int64_t i = 0; i < rows; ++i)
      apply_to_line(line, to + i * stride, from + i * state.row_bytes, width);
  });
}

}  // namespace embertable::sharded
