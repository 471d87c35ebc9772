#include "engine/intake/batch_parts.h"

#include "base/read_once.h"
#include "embertable/errors.h"
#include "input/detected_shape.h"

namespace embertable::engine {
namespace {

template <class Span>
Span piece(const Span& all, std::int64_t first, std::int64_t count) {
  const auto cut = [&](const auto* data) { return Span(std::span(data + first, count)); };
  if constexpr (std::is_same_v<Span, IntegerSpan>) {
    return all.is_int64() ? cut(static_cast<const std::int64_t*>(all.data()))
                          : cut(static_cast<const std::int32_t*>(all.data()));
  } else {
    return all.is_double() ? cut(static_cast<const double*>(all.data()))
                           : cut(static_cast<const float*>(all.data()));
  }
}

bool cut_dense(const DenseIds& ids, std::int64_t feature, std::span<CoreBatch> cores) {
  const Shape whole = input::shape_of(ids);
  if (!whole.fully_defined() || whole.rank() < 1 || whole.num_elements() != ids.values.size())
    return false;
  const auto parts = static_cast<std::int64_t>(cores.size());
  const Shape shape = whole.with_leading(whole[0] / parts);
  const std::int64_t count = ids.values.size() / parts;
  for (std::int64_t part = 0; part < parts; ++part) {
    cores[part].features[feature].part_ids =
        DenseIds{piece(ids.values, part * count, count), shape};
  }
  return true;
}

std::int64_t read_integer(const IntegerSpan& from, std::int64_t i) {
  return from.is_int64() ? read_once(static_cast<const std::int64_t*>(from.data())[i])
                         : read_once(static_cast<const std::int32_t*>(from.data())[i]);
}

/// Notes the row of each entry and counts the entries of each core's rows. Returns false for an
/// entry outside all rows.
bool note_rows(const SparseIds& ids, std::int64_t rows, std::span<std::int64_t> row_of,
               std::span<std::int64_t> count) {
  const int rank = ids.dense_shape.rank();
  for (std::int64_t entry = 0; entry < ids.values.size(); ++entry) {
    const std::int64_t row = row_of[entry] = read_integer(ids.indices, entry * rank);
    if (row < 0 || row >= ids.dense_shape[0]) return false;
    ++count[row / rows];
  }
  return true;
}

bool cut_sparse(const SparseIds& ids, const FloatSpan* weights, std::int64_t feature,
                std::span<CoreBatch> cores) {
  const Shape& whole = ids.dense_shape;
  const std::int64_t entries = ids.values.size();
  if (!whole.fully_defined() || whole.rank() < 1 || ids.indices.size() != entries * whole.rank() ||
      (weights && weights->size() != entries))
    return false;
  const std::int64_t rows = whole[0] / static_cast<std::int64_t>(cores.size());
  const int rank = whole.rank();
  Arena& shared = cores.front().part_memory;
  const auto count = shared.take_zeros<std::int64_t>(std::ssize(cores));
  // Another thread may change the indices: the rows that were counted are those that are cut.
  const auto row_of = shared.take<std::int64_t>(entries);
  if (!note_rows(ids, rows, row_of, count)) return false;

  struct Part {
    std::span<std::int64_t> indices, values;
    std::span<float> weights;
  };
  const auto part = shared.take<Part>(std::ssize(cores));
  for (std::int64_t core = 0; core < std::ssize(cores); ++core) {
    Arena& memory = cores[core].part_memory;
    part[core] = {memory.take<std::int64_t>(count[core] * rank),
                  memory.take<std::int64_t>(count[core]),
                  memory.take<float>(weights ? count[core] : 0)};
    count[core] = 0;
  }
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    const std::int64_t row = row_of[entry];
    const std::int64_t core = row / rows, at = count[core]++;
    std::int64_t* index = &part[core].indices[at * rank];
    index[0] = row % rows;
    for (int axis = 1; axis < rank; ++axis) index[axis] = ids.indices[entry * rank + axis];
    part[core].values[at] = ids.values[entry];
    if (weights) part[core].weights[at] = (*weights)[entry];
  }
  for (std::int64_t core = 0; core < std::ssize(cores); ++core) {
    const Part& mine = part[core];
    cores[core].features[feature].part_ids =
        SparseIds{std::span<const std::int64_t>(mine.indices),
                  std::span<const std::int64_t>(mine.values), whole.with_leading(rows)};
    if (weights)
      cores[core].features[feature].part_weights =
          SparseWeights{std::span<const float>(mine.weights)};
  }
  return true;
}

}  // namespace

void check_can_be_cut(const FeatureIds& ids, std::int64_t parts, const std::string& path,
                      std::int32_t replica) {
  const auto refuse = [&](const std::string& rule) {
    throw ValueError("feature '" + path + "', replica " + std::to_string(replica) + ": " + rule);
  };
  if (std::holds_alternative<RaggedIds>(ids)) {
    refuse("ragged ids cannot be cut for the " + std::to_string(parts) +
           " cores of a replica; enqueue by device, or dense or sparse ids");
  }
  const Shape shape = std::holds_alternative<DenseIds>(ids)
                          ? input::shape_of(std::get<DenseIds>(ids))
                          : std::get<SparseIds>(ids).dense_shape;
  if (shape.rank() >= 1 && shape[0] % parts != 0) {
    refuse("axis 0 must be a multiple of the replica's " + std::to_string(parts) +
           " cores, got shape " + shape.to_string());
  }
}

bool cut_in_parts(const FeatureIds& ids, const FeatureWeights& weights, std::int64_t feature,
                  std::span<CoreBatch> cores) {
  for (CoreBatch& core : cores) core.features[feature].part_weights = std::monostate();
  const bool unweighted = std::holds_alternative<std::monostate>(weights);
  if (const auto* dense = std::get_if<DenseIds>(&ids))
    return unweighted && cut_dense(*dense, feature, cores);
  const auto* sparse = std::get_if<SparseIds>(&ids);
  const auto* of_sparse = std::get_if<SparseWeights>(&weights);
  if (!sparse || !(unweighted || of_sparse)) return false;
  return cut_sparse(*sparse, of_sparse ? &of_sparse->values : nullptr, feature, cores);
}

}  // namespace embertable::engine
