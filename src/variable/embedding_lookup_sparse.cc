#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "embertable/variables/embedding_lookup.h"
#include "input/denominator.h"
#include "kernels/gather/gather.h"
#include "tensor/concatenate.h"
#include "tensor/element_type.h"
#include "tensor/ranges.h"
#include "variable/lookup_entries.h"
#include "variable/lookup_rows.h"

namespace embertable {
namespace {

using sharded::LookupEntries;
using sharded::LookupRows;

/// Rows in memory, by number.
struct NumberedRows {
  const std::byte* base = nullptr;
  std::int64_t unit = 0;  ///< bytes
  const std::uint64_t* number = nullptr;
};

/// Factors and divisors of the entries of each output. An empty one means none.
template <class Number>
struct Gains {
  std::vector<Number> weight;       ///< [nnz]
  std::vector<Number> denominator;  ///< [outputs]
};

template <class Number>
Number weight_at(const FloatSpan& weights, std::int64_t source) {
  if (source < 0) return 1;  // the entry of default_id
  return static_cast<Number>(weights.is_double()
                                 ? static_cast<const double*>(weights.data())[source]
                                 : static_cast<const float*>(weights.data())[source]);
}

template <class Number>
Gains<Number> gains_of(const LookupEntries& entries, const FloatSpan* weights, Combiner combiner) {
  Gains<Number> gains;
  if (weights != nullptr)
    for (const std::int64_t source : entries.source)
      gains.weight.push_back(weight_at<Number>(*weights, source));
  if (combiner == Combiner::kSum) return gains;
  for (std::size_t row = 0; row + 1 < entries.split.size(); ++row) {
    const std::int64_t count = entries.split[row + 1] - entries.split[row];
    Number by = 0;
    if (count > 0)
      by = weights == nullptr
               ? input::denominator_of_ones<Number>(count, combiner)
               : input::denominator_of(gains.weight.data() + entries.split[row], count, combiner);
    gains.denominator.push_back(by);
  }
  return gains;
}

/// Number of values of a row that are summed at once.
constexpr std::int64_t kSumTile = 256;

/// Sums elements [column, column + sum.size()) of one output of a table that no kernel supports: as
/// Number, rounded to T once.
template <class T, class Number>
void combine_tile(const NumberedRows& rows, const LookupEntries& entries,
                  const Gains<Number>& gains, std::size_t output, std::int64_t column,
                  std::span<Number> sum, T* out) noexcept {
  const auto begin = static_cast<std::size_t>(entries.split[output]);
  const auto end = static_cast<std::size_t>(entries.split[output + 1]);
  for (std::size_t j = begin; j < end; ++j) {
    const T* row = reinterpret_cast<const T*>(
                       rows.base + rows.number[j] * static_cast<std::uint64_t>(rows.unit)) +
                   column;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      Number term = static_cast<Number>(row[c]);
      if (!gains.weight.empty()) term *= gains.weight[j];
      sum[c] = j == begin ? term : sum[c] + term;
    }
  }
  const Number by = gains.denominator.empty() ? 1 : gains.denominator[output];
  for (std::size_t c = 0; c < sum.size(); ++c)
    out[column + static_cast<std::int64_t>(c)] =
        static_cast<T>(begin == end || by == 0 ? Number{0} : sum[c] / by);
}

template <class T, class Number>
void combine(const NumberedRows& rows, const LookupEntries& entries, const Gains<Number>& gains,
             Tensor& result, std::int64_t width, Executor* executor) {
  T* out = result.mutable_values<T>().data();
  for_ranges(std::ssize(entries.split) - 1, width * std::int64_t{sizeof(T)}, executor,
             [&](std::int64_t first, std::int64_t last) {
               Number sum[kSumTile] = {};
               for (std::int64_t i = first; i < last; ++i)
                 for (std::int64_t c = 0; c < width; c += kSumTile)
                   combine_tile<T, Number>(rows, entries, gains, static_cast<std::size_t>(i), c,
                                           std::span(sum).first(std::min(kSumTile, width - c)),
                                           out + i * width);
             });
}

void combine_floats(const NumberedRows& rows, const LookupEntries& entries,
                    const Gains<float>& gains, Tensor& result, std::int64_t width,
                    Executor* executor) {
  Gather<std::uint64_t> all{.row = rows.number, .split = entries.split.data()};
  all.rows = {reinterpret_cast<const float*>(rows.base), rows.unit / std::int64_t{sizeof(float)},
              nullptr, width};
  if (!gains.weight.empty()) all.weight = gains.weight.data();
  if (!gains.denominator.empty()) all.denominator = gains.denominator.data();
  all.out = result.mutable_values<float>().data();
  const SimdLevel level = simd_level();
  for_ranges(std::ssize(entries.split) - 1, width * std::int64_t{sizeof(float)}, executor,
             [&](std::int64_t first, std::int64_t last) {
               Gather<std::uint64_t> part = all;
               part.first = first;
               part.last = last;
               gather(part, level);
             });
}

/// Returns the wanted rows, one after the other, each limited.
Tensor limited_rows(const LookupRows& rows, const RowIndices& wanted,
                    const EmbeddingLookupOptions& options) {
  Tensor packed(rows.dtype(), Shape({wanted.count, rows.width()}));
  read_rows({.addresses = rows.addresses(),
             .indices = wanted,
             .row_bytes = rows.row_bytes(),
             .out = packed.mutable_bytes().data(),
             .executor = options.executor.get()});
  sharded::limit_norms(packed, rows.width(), *options.max_norm, options.executor.get());
  return packed;
}

void combine_all(const LookupRows& rows, const RowIndices& wanted, const LookupEntries& entries,
                 const FloatSpan* weights, const SparseLookupOptions& options, Tensor& result) {
  std::vector<std::uint64_t> number(entries.id.size());
  NumberedRows where{rows.addresses().base(), rows.addresses().unit(), number.data()};
  Tensor limited;
  if (options.max_norm) {
    limited = limited_rows(rows, wanted, options);
    where = {limited.data(), rows.row_bytes(), number.data()};
    std::iota(number.begin(), number.end(), std::uint64_t{0});
  } else {
    rows.addresses().numbers(wanted, 0, wanted.count, number.data());
  }
  with_element_type(rows.dtype(), [&]<class T>(ElementType<T>) {
    Executor* executor = options.executor.get();
    if constexpr (std::is_same_v<T, float>)
      combine_floats(where, entries, gains_of<float>(entries, weights, options.combiner), result,
                     rows.width(), executor);
    else if constexpr (std::is_same_v<T, double>)
      combine<T, double>(where, entries, gains_of<double>(entries, weights, options.combiner),
                         result, rows.width(), executor);
    else if constexpr (!std::is_integral_v<T>)
      combine<T, float>(where, entries, gains_of<float>(entries, weights, options.combiner), result,
                        rows.width(), executor);
  });
}

Tensor look_up(const LookupParams& params, const FeatureIds& ids, const FeatureWeights& weights,
               const SparseLookupOptions& options, const sharded::EntryRules& rules) {
  check_enumerator(options.combiner, "lookup: combiner");
  const LookupRows rows(params, options.partition_strategy);
  sharded::check_max_norm(options, rows.dtype());
  if (!is_floating(rows.dtype()))
    throw ValueError("lookup: sums need a table of floating-point numbers, got " +
                     std::string(to_string(rows.dtype())));
  const FloatEnvironment ours;
  const LookupEntries entries = sharded::entries_of(ids, weights, rules);
  Tensor result(rows.dtype(), joined(entries.outputs, rows.row_shape()));
  std::vector<std::int64_t> memory;
  const RowIndices wanted = rows.rows_of(entries.id, entries.source, memory);
  if (result.size() > 0)
    combine_all(rows, wanted, entries, sharded::values_of(weights), options, result);
  return result;
}

}  // namespace

Tensor embedding_lookup_sparse(const LookupParams& params, const FeatureIds& ids,
                               const FeatureWeights& weights, const SparseLookupOptions& options) {
  return look_up(params, ids, weights, options, {});
}

Tensor safe_embedding_lookup_sparse(const LookupParams& params, const FeatureIds& ids,
                                    const FeatureWeights& weights,
                                    const SafeLookupOptions& options) {
  if (params.parts().empty()) throw ValueError("lookup: Missing embedding_weights, got none");
  return look_up(params, ids, weights, options,
                 {.keep_axes = true,
                  .prune_ids = true,
                  .prune_weights = options.combiner != Combiner::kSum,
                  .default_id = options.default_id});
}

}  // namespace embertable
