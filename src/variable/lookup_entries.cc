#include "variable/lookup_entries.h"

#include <string>

#include "embertable/errors.h"
#include "input/batch_rules.h"
#include "input/detected_shape.h"
#include "input/sparse_order.h"

namespace embertable::sharded {
namespace {

/// Limit of the outputs: more would not fit into memory, and fewer cannot overflow.
constexpr std::int64_t kMostOutputs = std::int64_t{1} << 40;

/// Returns the place of an error, without sample and position.
input::DataPlace in_lookup() { return input::DataPlace::of_call("lookup"); }

void check_weights(const FeatureIds& ids, const FeatureWeights& weights, std::int64_t entries) {
  if (std::holds_alternative<DenseIds>(ids))
    throw TypeError("lookup: ids must be sparse or ragged, got dense ids");
  const FloatSpan* values = values_of(weights);
  if (values == nullptr) return;
  const bool sparse = std::holds_alternative<SparseIds>(ids);
  if (std::holds_alternative<DenseWeights>(weights) ||
      sparse != std::holds_alternative<SparseWeights>(weights))
    throw TypeError(std::string("lookup: weights must be of the kind of the ids, ") +
                    (sparse ? "sparse" : "ragged"));
  input::require_weights(entries, values->size(), in_lookup());
}

/// True if a weight is above 0. NaN is not.
bool is_above_zero(const FloatSpan& weights, std::int64_t i) {
  return weights.is_double() ? static_cast<const double*>(weights.data())[i] > 0 : weights[i] > 0;
}

bool counts(const EntryRules& rules, std::int64_t id, const FloatSpan* weights, std::int64_t i) {
  if (rules.prune_ids && id < 0) return false;
  return !rules.prune_weights || weights == nullptr || is_above_zero(*weights, i);
}

/// Returns the axes of sparse ids that stay.
Shape outputs_of(const SparseIds& ids, bool keep_axes) {
  const Shape& shape = ids.dense_shape;
  if (const std::string rule = input::broken_rank_rule(ids); !rule.empty())
    throw ValueError("lookup: " + rule);
  input::require_indices(ids, in_lookup());
  const Shape outputs = keep_axes ? shape.without_last() : Shape({shape[0]});
  if (outputs.num_elements() < kMostOutputs) return outputs;
  throw ValueError("lookup: sparse ids must have fewer than 2^40 rows, got shape " +
                   shape.to_string());
}

/// Returns the output row of sparse entry i.
std::int64_t row_of(const SparseIds& ids, const Shape& outputs, std::int64_t i) {
  const int rank = ids.dense_shape.rank();
  std::uint64_t row = 0;  // wraps around before an axis of 0, which has no index, is refused
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t index = ids.indices[i * rank + axis];
    if (index < 0 || index >= ids.dense_shape[axis]) {
      input::DataPlace place = in_lookup();
      place.position = i;
      input::refuse_data(place, input::broken_index_rule({ids.indices, ids.dense_shape}, i));
    }
    if (axis < outputs.rank()) row = row * outputs[axis] + index;
  }
  return static_cast<std::int64_t>(row);
}

std::vector<std::int64_t> rows_of(const SparseIds& ids, const Shape& outputs) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < ids.values.size(); ++i) rows.push_back(row_of(ids, outputs, i));
  return rows;
}

Shape outputs_of(const RaggedIds& ids) {
  input::require_ends(ids.row_splits, ids.values.size(), in_lookup());
  return {ids.row_splits.size() - 1};
}

std::vector<std::int64_t> rows_of(const RaggedIds& ids) {
  const IntegerSpan& splits = ids.row_splits;
  for (std::int64_t split = 1; split < splits.size(); ++split)
    if (splits[split] < splits[split - 1]) input::refuse_fall(splits, split, 0, in_lookup());
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row + 1 < splits.size(); ++row) {
    const std::int64_t end = splits[row + 1];
    if (end < std::ssize(rows) || end > ids.values.size()) break;
    rows.resize(end, row);
  }
  if (std::ssize(rows) != ids.values.size()) input::refuse_changing_splits(in_lookup());
  return rows;
}

/// Sorts the entries by their rows, by counting; row -1 means none.
void place(const std::vector<std::int64_t>& rows, const IntegerSpan& values,
           const EntryRules& rules, LookupEntries& entries) {
  const auto outputs = static_cast<std::size_t>(entries.outputs.num_elements());
  std::vector<std::int64_t>& split = entries.split;
  split.assign(outputs + 1, 0);
  for (const std::int64_t row : rows)
    if (row >= 0) ++split[row + 1];
  std::vector<std::int64_t> next(outputs);  // where each output's next entry goes
  for (std::size_t row = 0; row < outputs; ++row) {
    next[row] = split[row];
    if (rules.default_id && split[row + 1] == 0) split[row + 1] = 1;
    split[row + 1] += split[row];
  }
  entries.id.assign(split.back(), rules.default_id.value_or(0));
  entries.source.assign(entries.id.size(), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0) continue;
    const auto at = static_cast<std::size_t>(next[rows[i]]++);
    entries.source[at] = static_cast<std::int64_t>(i);
    entries.id[at] = values[static_cast<std::int64_t>(i)];
  }
}

}  // namespace

const FloatSpan* values_of(const FeatureWeights& weights) {
  return std::visit(
      [](const auto& of_kind) -> const FloatSpan* {
        if constexpr (std::is_same_v<decltype(of_kind), const std::monostate&>)
          return nullptr;
        else
          return &of_kind.values;
      },
      weights);
}

LookupEntries entries_of(const FeatureIds& ids, const FeatureWeights& weights,
                         const EntryRules& rules) {
  const IntegerSpan values =
      std::visit([](const auto& of_kind) -> IntegerSpan { return of_kind.values; }, ids);
  check_weights(ids, weights, values.size());
  LookupEntries entries;
  std::vector<std::int64_t> rows;
  if (const auto* sparse = std::get_if<SparseIds>(&ids)) {
    entries.outputs = outputs_of(*sparse, rules.keep_axes);
    rows = rows_of(*sparse, entries.outputs);
  } else {
    entries.outputs = outputs_of(std::get<RaggedIds>(ids));
    rows = rows_of(std::get<RaggedIds>(ids));
  }
  const FloatSpan* weight = values_of(weights);
  for (std::int64_t i = 0; i < values.size(); ++i)
    if (!counts(rules, values[i], weight, i)) rows[i] = -1;
  place(rows, values, rules, entries);
  return entries;
}

}  // namespace embertable::sharded
