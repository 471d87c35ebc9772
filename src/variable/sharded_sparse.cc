#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "embertable/errors.h"
#include "kernels/level.h"
#include "kernels/scatter.h"
#include "tensor/element_type.h"
#include "tensor/index_parts.h"
#include "tensor/strides.h"
#include "variable/block_text.h"
#include "variable/checked_indices.h"
#include "variable/row_operation.h"
#include "variable/sharded_operations.h"

namespace embertable {

template <>
struct Enumerators<ScatterOperation>
    : EnumeratorRange<ScatterOperation::kAdd, ScatterOperation::kUpdate> {};

}  // namespace embertable

namespace embertable::sharded {
namespace {

RowIndices row_indices(const Tensor& packed) {
  return {packed.data(), packed.size(), packed.dtype() == DType::kInt64};
}

bool has_zero(const Tensor& values) {
  const auto any = [](auto span) { return std::ranges::find(span, 0) != span.end(); };
  return values.dtype() == DType::kInt32   ? any(values.values<std::int32_t>())
         : values.dtype() == DType::kInt64 ? any(values.values<std::int64_t>())
                                           : false;
}

static_assert(static_cast<int>(RowOperation::kAdd) == static_cast<int>(ScatterOperation::kAdd) &&
              static_cast<int>(RowOperation::kUpdate) ==
                  static_cast<int>(ScatterOperation::kUpdate));

constexpr const char* kScatterNames[] = {"scatter_add",   "scatter_sub", "scatter_mul",
                                         "scatter_div",   "scatter_min", "scatter_max",
                                         "scatter_update"};

/// Describes the change of a piece to rows of `addresses`.
struct PieceChange {
  LineOperation what;
  const RowAddresses& addresses;
  std::int64_t row_bytes;
  const std::byte* values;
  SimdLevel level;

  void operator()(const ChangePiece& piece) const {
    what.dtype == DType::kFloat32 ? change_floats(piece) : change_lines(piece);
  }

  std::byte* base() const { return const_cast<std::byte*>(addresses.base()); }

  void change_floats(const ChangePiece& piece) const {
    constexpr auto kWidth = static_cast<std::int64_t>(sizeof(float));
    scatter_rows(static_cast<RowOperation>(what.operation),
                 {.table = reinterpret_cast<float*>(base()),
                  .stride = addresses.unit() / kWidth,
                  .dim = row_bytes / kWidth,
                  .row = piece.number,
                  .from = piece.from,
                  .values = reinterpret_cast<const float*>(values + piece.first * row_bytes),
                  .count = piece.count,
                  .soon = piece.soon},
                 level);
  }

  void change_lines(const ChangePiece& piece) const {
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const std::int64_t from =
          piece.from == nullptr ? piece.first + i : static_cast<std::int64_t>(piece.from[i]);
      apply_to_line(what, base() + static_cast<std::int64_t>(piece.number[i]) * addresses.unit(),
                    values + from * row_bytes, row_bytes / byte_width(what.dtype));
    }
  }
};

void check_div_sharding(const ShardedState& state) {
  if (!state.options.require_div_sharding || state.div_sharded()) return;
  throw NotImplemented(
      fmt::format("{}sparse operations are only for \"div\" sharding of {} rows by {}",
                  state.subject(), state.shape[0], state.components.size()));
}

/// Throws what ShardedVariable::sparse_read throws for the kind of indices.
void check_kind(const ShardedState& state, const char* operation, const Tensor& indices) {
  if (indices.rank() != 1)
    throw ValueError(fmt::format("{}{}: indices must be 1D, got shape {}", state.subject(),
                                 operation, indices.shape().to_string()));
  if (!is_integer(indices.dtype()))
    throw TypeError(fmt::format("{}{}: indices must be int32 or int64, got {}", state.subject(),
                                operation, to_string(indices.dtype())));
  check_div_sharding(state);
}

[[noreturn]] void refuse_change(const ShardedState& state, const char* operation) {
  throw IndexError(
      fmt::format("{}{}: indices must not change during the call", state.subject(), operation));
}

/// Throws IndexError if the check found an index.
void check_inside(const ShardedState& state, const char* operation,
                  const std::optional<IndexOutside>& outside) {
  if (!outside) return;
  const auto [position, index] = *outside;
  if (index >= 0 && index < state.shape[0]) refuse_change(state, operation);
  throw IndexError(fmt::format("{}{}: indices[{}] = {} {}{}", state.subject(), operation, position,
                               index, out_of_bounds_text(0, state.shape[0]), state.at_row(index)));
}

/// Returns packed indices. Throws what ShardedVariable::sparse_read throws.
Tensor checked_indices(const ShardedState& state, const char* operation, const Tensor& indices) {
  check_kind(state, operation, indices);
  Tensor packed = indices.packed();
  check_inside(state, operation,
               find_outside(row_indices(packed), state.shape[0], state.executor()));
  return packed;
}

void read_checked(const ShardedState& state, const Tensor& indices, std::span<std::byte> out) {
  const std::vector<RowBlockPlace> places = state.places();
  const RowAddresses addresses(state.locator, places);
  if (!read_rows({addresses, row_indices(indices), state.row_bytes, out.data(), state.executor()}))
    refuse_change(state, "sparse_read");
}

}  // namespace

Tensor sparse_read(const ShardedState& state, const Tensor& indices) {
  const Tensor checked = checked_indices(state, "sparse_read", indices);
  Tensor rows(state.dtype(), state.rows_shape(checked.size()));
  read_checked(state, checked, rows.mutable_bytes());
  return rows;
}

void sparse_read(const ShardedState& state, const Tensor& indices, std::span<std::byte> out) {
  const Tensor checked = checked_indices(state, "sparse_read", indices);
  const std::int64_t bytes = checked.size() * state.row_bytes;
  if (static_cast<std::int64_t>(out.size()) != bytes)
    throw ValueError(fmt::format("{}sparse_read: {} rows have {} bytes, got memory of {}",
                                 state.subject(), checked.size(), bytes, out.size()));
  read_checked(state, checked, out);
}

void scatter(ShardedState& state, ScatterOperation op, const Tensor& indices,
             const Tensor& values) {
  check_enumerator(op, "scatter operation");
  const char* const operation = kScatterNames[static_cast<std::size_t>(op)];
  check_kind(state, operation, indices);
  // The caller's indices are read once. They may lie in rows that the operation changes.
  state.scratch.reset();
  const CopiedIndices copied =
      copy_indices(row_indices(indices.packed()), state.shape[0], state.executor(), state.scratch);
  check_inside(state, operation, copied.outside);
  state.check_value(operation, values, indices.size());
  if (state.dtype() == DType::kBool && op != ScatterOperation::kUpdate)
    throw ValueError(fmt::format("{}{} takes numbers, not bool", state.subject(), operation));
  const Tensor source = state.overlaps(values) ? values.copy() : values.packed();
  if (op == ScatterOperation::kDiv && has_zero(source))
    throw ValueError(
        fmt::format("{}{}: an integer is divided by zero", state.subject(), operation));
  const RowIndices& rows = copied.rows;
  const std::vector<RowBlockPlace> places = state.writable_places(state.touched_by(rows));
  const RowAddresses addresses(state.locator, places);
  const PieceChange change = {
      {op, state.dtype()}, addresses, state.row_bytes, source.data(), simd_level()};
  change_rows({addresses, rows, state.row_bytes, state.executor(), &state.scratch}, change);
}

}  // namespace embertable::sharded
