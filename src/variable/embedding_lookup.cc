#include "embertable/variables/embedding_lookup.h"

#include <string>
#include <utility>

#include "embertable/errors.h"
#include "tensor/concatenate.h"
#include "variable/lookup_rows.h"

namespace embertable {
namespace {

std::vector<Tensor> values_of(const std::vector<Variable>& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) {
    if (!variable) throw TypeError("lookup: a part must be a variable, got none");
    values.push_back(variable.value());
  }
  return values;
}

std::vector<std::string> names_of(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

IntegerSpan integers_of(const Tensor& packed) {
  if (packed.dtype() == DType::kInt32) return packed.values<std::int32_t>();
  return packed.values<std::int64_t>();
}

/// Checks the splits of one level over `rows` of the next. Throws ValueError.
void check_splits(std::span<const std::int64_t> splits, std::int64_t rows, std::size_t level) {
  bool rises = !splits.empty() && splits.front() == 0 && splits.back() == rows;
  for (std::size_t i = 1; rises && i < splits.size(); ++i) rises = splits[i - 1] <= splits[i];
  if (!rises)
    throw ValueError("lookup: row_splits[" + std::to_string(level) + "] must run from 0 to " +
                     std::to_string(rows) + " and never fall");
}

void check_nesting(const RaggedTensor& ids) {
  if (ids.row_splits.empty() || ids.values.rank() < 1)
    throw ValueError("lookup: ragged ids must have row_splits and values of rank >= 1");
  const std::size_t levels = ids.row_splits.size();
  for (std::size_t level = 0; level < levels; ++level) {
    const bool last = level + 1 == levels;
    const std::int64_t rows =
        last ? ids.values.shape()[0] : std::ssize(ids.row_splits[level + 1]) - 1;
    check_splits(ids.row_splits[level], rows, level);
  }
}

}  // namespace

LookupParams::LookupParams(const ShardedVariable& variable)
    : parts_(values_of(variable.components())),
      name_(variable.name()),
      part_names_(names_of(variable.components())),
      is_container_(true) {}
LookupParams::LookupParams(Tensor part) { parts_.push_back(std::move(part)); }
LookupParams::LookupParams(const Variable& part) : LookupParams(std::vector<Variable>{part}) {}
LookupParams::LookupParams(std::vector<Tensor> parts) : parts_(std::move(parts)) {}
LookupParams::LookupParams(const std::vector<Variable>& parts)
    : parts_(values_of(parts)), part_names_(names_of(parts)) {}

Sharding parse_partition_strategy(std::string_view name) {
  if (name == "div") return Sharding::kDiv;
  if (name == "mod") return Sharding::kMod;
  throw ValueError("lookup: Unrecognized partition strategy: must be 'div' or 'mod', got '" +
                   std::string(name) + "'");
}

Tensor embedding_lookup(const LookupParams& params, const Tensor& ids,
                        const EmbeddingLookupOptions& options) {
  const sharded::LookupRows rows(params, options.partition_strategy);
  sharded::check_max_norm(options, rows.dtype());
  if (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64)
    throw ValueError("lookup: ids must be int32 or int64, got " +
                     std::string(to_string(ids.dtype())));
  const Tensor packed = ids.packed();
  std::vector<std::int64_t> memory;
  const RowIndices wanted = rows.rows_of(integers_of(packed), {}, memory);
  Tensor result(rows.dtype(), joined(ids.shape(), rows.row_shape()));
  if (!read_rows({.addresses = rows.addresses(),
                  .indices = wanted,
                  .row_bytes = rows.row_bytes(),
                  .out = result.mutable_bytes().data(),
                  .executor = options.executor.get()}))
    throw IndexError("lookup: ids must not change during the call");
  if (options.max_norm)
    sharded::limit_norms(result, rows.width(), *options.max_norm, options.executor.get());
  return result;
}

RaggedTensor embedding_lookup(const LookupParams& params, const RaggedTensor& ids,
                              const EmbeddingLookupOptions& options) {
  check_nesting(ids);
  return {ids.row_splits, embedding_lookup(params, ids.values, options)};
}

}  // namespace embertable
