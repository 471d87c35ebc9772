// Prepares the entries of an input for a gather: checked, in canonical order, pruned.
#include <algorithm>

#include "base/read_once.h"
#include "input/denominator.h"
#include "kernels/level.h"
#include "serving/input.h"
#include "step/quantization.h"

namespace embertable::serving {
namespace {

using input::Coordinates;
using input::PlacedEntry;

/// Arrays that `fill` writes. Those that a lookup does not need are not touched.
struct Arrays {
  std::uint64_t* row;
  std::int64_t* split;
  float* weight;
  float* denominator;

  Arrays(const Input& in, std::byte* scratch)
      : row(reinterpret_cast<std::uint64_t*>(scratch)),
        split(reinterpret_cast<std::int64_t*>(row + in.entries)),
        weight(reinterpret_cast<float*>(split + in.outputs + 1)),
        denominator(weight + (in.weighted ? in.entries : 0)) {}
};

bool is_outside(const Input& in, std::int64_t id) noexcept {
  return static_cast<std::uint64_t>(id) >= static_cast<std::uint64_t>(in.rows.rows);
}

[[noreturn]] void refuse_id(const Input& in, std::int64_t sample, std::int64_t position,
                            std::int64_t id) {
  input::refuse_data({*in.path, in.form.replica, sample, position},
                     input::id_rule(in.rows.rows, id));
}

/// Calls use(values) with the caller's ids as an array of their type.
template <class Use>
auto with_ids(const IntegerSpan& ids, Use use) {
  return ids.is_int64() ? use(static_cast<const std::int64_t*>(ids.data()))
                        : use(static_cast<const std::int32_t*>(ids.data()));
}

/// Copies the ids and checks the copy, since another thread may change the caller's.
template <class Int>
void take_dense(const Input& in, const Int* ids, std::uint64_t* row) {
  const std::uint64_t last = static_cast<std::uint64_t>(in.rows.rows) - 1;
  std::uint64_t outside = 0;  // top bit: an id is below 0 or above the last row
  for (std::int64_t i = 0; i < in.entries; ++i) {
    const auto id = static_cast<std::uint64_t>(std::int64_t{ids[i]});
    row[i] = id;
    outside |= id | (last - id);
  }
  if (static_cast<std::int64_t>(outside) >= 0) return;
  for (std::int64_t i = 0; i < in.entries; ++i)
    if (row[i] > last) refuse_id(in, i, i, static_cast<std::int64_t>(row[i]));
}

/// Copies the entries of each output row, which `split` cuts out of the canonical order, to row and
/// weight. Leaves no gaps for pruned entries, and adapts split. Returns the number of kept entries.
template <class Int>
std::int64_t take_entries(const Input& in, const Int* ids, const PlacedEntry* order,
                          const Arrays& to) {
  std::int64_t kept = 0, next = 0;
  for (std::int64_t output = 0; output < in.outputs; ++output) {
    const std::int64_t end = to.split[output + 1];
    for (; next < end; ++next) {
      const std::int64_t entry = order != nullptr ? order[next].entry : next;
      const std::int64_t id = read_once(ids[entry]);
      const float weight = in.weighted ? in.weights[entry] : 1.0f;
      if (in.prune && (id < 0 || (in.combiner != Combiner::kSum && !(weight > 0)))) continue;
      if (is_outside(in, id)) refuse_id(in, output, entry, id);
      to.row[kept] = static_cast<std::uint64_t>(id);
      if (in.weighted) to.weight[kept] = weight;
      ++kept;
    }
    to.split[output + 1] = kept;
  }
  return kept;
}

/// Gives the first entries of each row output rows of their own. The splits have been checked, but
/// another thread may have changed them since.
template <class Int, class Split>
std::int64_t take_ragged_sequences(const Input& in, const Int* ids, const Split* splits,
                                   const Arrays& to) {
  std::int64_t kept = 0, begin = 0;
  for (std::int64_t output = 0; output < in.outputs;) {
    const std::int64_t end = read_once(splits[output / in.sequence + 1]);
    if (end < begin || end > in.entries) input::refuse_changing_splits(place_of(in));
    const std::int64_t last = output + in.sequence;
    for (std::int64_t entry = begin; output < last; ++entry) {
      if (entry < end) {
        const std::int64_t id = read_once(ids[entry]);
        if (is_outside(in, id)) refuse_id(in, output, entry, id);
        to.row[kept++] = static_cast<std::uint64_t>(id);
      }
      to.split[++output] = kept;
    }
    begin = end;
  }
  return kept;
}

template <class Split>
void check_splits(const Input& in, const Split* splits, std::int64_t rows) {
  const Split* const fall = std::is_sorted_until(splits, splits + rows + 1);
  if (fall != splits + rows + 1)
    input::refuse_fall(std::span(splits, rows + 1), fall - splits, in.sequence, place_of(in));
}

std::int64_t fill_ragged(const Input& in, const RaggedIds& ids, const Arrays& to) {
  to.split[0] = 0;
  return with_ids(ids.row_splits, [&](const auto* splits) {
    const std::int64_t rows = ids.row_splits.size() - 1;
    if (in.sequence > 0) {
      check_splits(in, splits, rows);
      return with_ids(ids.values, [&](const auto* values) {
        return take_ragged_sequences(in, values, splits, to);
      });
    }
    std::copy_n(splits, rows + 1, to.split);
    check_splits(in, to.split, rows);
    if (to.split[0] != 0 || to.split[rows] != in.entries)
      input::refuse_changing_splits(place_of(in));
    return with_ids(ids.values,
                    [&](const auto* values) { return take_entries(in, values, nullptr, to); });
  });
}

/// Cuts the entries of a matrix into its rows, if all are in canonical order and within it.
template <class Int>
bool split_in_order(const Input& in, const Int* index, const Shape& shape, std::int64_t* split) {
  const auto rows = static_cast<std::uint64_t>(shape[0]);
  const auto columns = static_cast<std::uint64_t>(shape[1]);
  std::int64_t row = 0, before = 0, before_column = -1;
  split[0] = 0;
  for (std::int64_t entry = 0; entry < in.entries; ++entry, index += 2) {
    const std::int64_t at = read_once(index[0]), column = read_once(index[1]);
    const bool inside =
        static_cast<std::uint64_t>(at) < rows && static_cast<std::uint64_t>(column) < columns;
    if (!inside || at < before || (at == before && column < before_column)) return false;
    while (row < at) split[++row] = entry;
    before = at;
    before_column = column;
  }
  while (row < in.outputs) split[++row] = in.entries;
  return true;
}

/// Sorts the entries that a sequence does not cut off into canonical order.
const PlacedEntry* sort_entries(const Input& in, const SparseIds& ids, const Arrays& to,
                                SortBuffers& sort) {
  const Coordinates coordinates = {ids.indices, ids.dense_shape, in.sequence, in.entries};
  sort.order.resize(in.entries);
  sort.spare.resize(in.entries);
  const std::int64_t outside =
      order_entries(coordinates, in.outputs, to.split, {.order = sort.order, .spare = sort.spare});
  if (outside >= 0)
    input::refuse_data({*in.path, in.form.replica, -1, outside},
                       broken_index_rule(coordinates, outside));
  return sort.order.data();
}

std::int64_t fill_sparse(const Input& in, const SparseIds& ids, const Arrays& to,
                         SortBuffers& sort) {
  const bool in_order = in.sequence == 0 && ids.dense_shape.rank() == 2 &&
                        with_ids(ids.indices, [&](const auto* index) {
                          return split_in_order(in, index, ids.dense_shape, to.split);
                        });
  const PlacedEntry* order = in_order ? nullptr : sort_entries(in, ids, to, sort);
  return with_ids(ids.values,
                  [&](const auto* values) { return take_entries(in, values, order, to); });
}

bool has_one_each(const Input& in, std::int64_t kept, const std::int64_t* split) noexcept {
  if (kept != in.outputs) return false;
  for (std::int64_t output = 0; output < in.outputs; ++output)
    if (split[output] != output) return false;
  return true;
}

/// Writes the denominators. Returns whether any differs from 1.
bool write_denominators(const Input& in, const Arrays& to) noexcept {
  bool plain = true;
  for (std::int64_t output = 0; output < in.outputs; ++output) {
    const std::int64_t begin = to.split[output], count = to.split[output + 1] - begin;
    const float* const weight = in.weighted ? to.weight + begin : nullptr;
    const float denominator = input::denominator_of_entries(weight, count, in.combiner);
    to.denominator[output] = denominator;
    plain = plain && denominator == 1.0f;
  }
  return !plain;
}

/// Prefetches rows. `row` holds row numbers, or ids that may be out of range.
template <class Int>
void fetch_rows(const Rows& rows, const Int* row, std::int64_t count) noexcept {
  constexpr std::uint64_t kLineBytes = 64;
  const auto element = static_cast<std::uint64_t>(bytes_per_element(rows.type));
  const auto stride = static_cast<std::uint64_t>(rows.stride) * element;
  const auto bytes =
      static_cast<std::uint64_t>(rows.dim) * element + (rows.type == RowType::kInt8 ? 8 : 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto begin =
        reinterpret_cast<std::uintptr_t>(rows.base) + static_cast<std::uint64_t>(row[i]) * stride;
    for (std::uint64_t at = 0; at < bytes; at += kLineBytes)
      __builtin_prefetch(reinterpret_cast<const void*>(begin + at));
  }
}

const IntegerSpan& values_of(const FeatureIds& ids) {
  if (const auto* dense = std::get_if<DenseIds>(&ids)) return dense->values;
  if (const auto* sparse = std::get_if<SparseIds>(&ids)) return sparse->values;
  return std::get<RaggedIds>(ids).values;
}

}  // namespace

void fetch_rows(const Input& in) noexcept {
  if (in.rows.renumbered || !are_rows_fetched(in)) return;
  with_ids(values_of(*in.ids), [&](const auto* ids) { fetch_rows(in.rows, ids, in.entries); });
}

std::int64_t scratch_bytes(const Input& in) noexcept {
  const std::int64_t floats = in.outputs + (in.weighted ? in.entries : 0);
  return 8 * (in.entries + in.outputs + 1) + (4 * floats + 7) / 8 * 8;
}

void fill(Input& in, std::byte* scratch, SortBuffers& sort) {
  const Arrays to(in, scratch);
  Gather<std::uint64_t>& gather = in.gather;
  gather.rows = {in.rows.base, in.rows.stride, nullptr, in.rows.dim, in.rows.type};
  gather.grid = grid_of(in.feature->table->quantization_config);
  gather.row = to.row;
  gather.split = nullptr;
  gather.weight = gather.denominator = nullptr;
  gather.first = 0;
  gather.last = in.outputs;

  std::int64_t kept = in.entries;
  if (const auto* dense = std::get_if<DenseIds>(in.ids)) {
    with_ids(dense->values, [&](const auto* values) { take_dense(in, values, to.row); });
  } else {
    const auto* sparse = std::get_if<SparseIds>(in.ids);
    kept = sparse != nullptr ? fill_sparse(in, *sparse, to, sort)
                             : fill_ragged(in, std::get<RaggedIds>(*in.ids), to);
    const bool one_each = has_one_each(in, kept, to.split);
    if (!one_each) gather.split = to.split;
    if (in.weighted) gather.weight = to.weight;
    if (in.combiner != Combiner::kSum && !(one_each && !in.weighted) && write_denominators(in, to))
      gather.denominator = to.denominator;
  }
  if (in.rows.table != nullptr) in.rows.table->place(gather.row, kept, to.row);
  if (in.rows.renumbered && are_rows_fetched(in)) fetch_rows(in.rows, gather.row, kept);
}

}  // namespace embertable::serving
