#include "variable/sharded_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "embertable/errors.h"
#include "rows/placement.h"
#include "tensor/strides.h"
#include "variable/assignable.h"
#include "variable/block_text.h"

namespace embertable {
namespace {

std::vector<std::int64_t> component_rows(const std::vector<Variable>& components) {
  std::vector<std::int64_t> rows;
  for (const Variable& component : components) rows.push_back(component.shape()[0]);
  return rows;
}

}  // namespace

ShardedState::ShardedState(std::vector<Variable> variables, ShardedVariableOptions of_whole)
    : components(std::move(variables)), options(std::move(of_whole)) {
  locator = RowLocator(offsets_of(component_rows(components), subject()));
  shape = components[0].shape().with_leading(locator.rows());
  row_bytes = packed_strides(shape, byte_width(components[0].dtype()))[0];
  exported = {Variable::placeholder(components[0].dtype(), shape, options.name)};
}

bool ShardedState::div_sharded() const {
  const auto shards = static_cast<std::int32_t>(components.size());
  const Placement even(shape[0], shards, Sharding::kDiv);
  for (std::int32_t i = 0; i < shards; ++i)
    if (components[i].shape()[0] != even.shard_rows(i)) return false;
  return true;
}

std::string ShardedState::subject() const {
  return fmt::format("{} '{}': ", one_variable ? "variable" : "sharded variable", options.name);
}

std::string ShardedState::at_row(std::int64_t row) const {
  if (one_variable) return "";
  return block_text(locator, row, [&](std::size_t i) { return component_text(i, components[i]); });
}

std::vector<RowBlockPlace> ShardedState::places() const {
  std::vector<RowBlockPlace> all;
  for (const Variable& each : components) {
    const Variable::State& component = *each.state_;
    all.push_back({component.value.data(), component.row_stride, component.shape[0]});
  }
  return all;
}

std::vector<bool> ShardedState::touched_by(const RowIndices& rows) const {
  const bool settled = std::ranges::all_of(
      components, [](const Variable& component) { return component.state_->settled(); });
  std::vector<bool> touched(components.size(), settled);
  for (std::int64_t i = 0; !settled && i < rows.count; ++i) touched[locator.block(rows[i])] = true;
  return touched;
}

std::vector<RowBlockPlace> ShardedState::writable_places(const std::vector<bool>& touched) {
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (!touched[i]) continue;
    if (one_variable) {
      check_assignable("", components[i]);
    } else {
      check_assignable(subject(), i, components[i]);
    }
  }
  std::vector<RowBlockPlace> all = places();
  for (std::size_t i = 0; i < components.size(); ++i)
    if (touched[i]) all[i].data = components[i].state_->writable_rows();
  return all;
}

void ShardedState::check_value(const char* operation, const Tensor& value,
                               std::int64_t rows) const {
  const Shape wanted = rows_shape(rows);
  if (value.dtype() == dtype() && value.shape() == wanted) return;
  throw ValueError(fmt::format("{}{} needs {} of shape {}, got {} of shape {}", subject(),
                               operation, to_string(dtype()), wanted.to_string(),
                               to_string(value.dtype()), value.shape().to_string()));
}

bool ShardedState::overlaps(const Tensor& value) const {
  return std::ranges::any_of(components, [&](const Variable& component) {
    return component.state_->in_place != nullptr &&
           extent(component.state_->value).overlaps(extent(value));
  });
}

}  // namespace embertable
