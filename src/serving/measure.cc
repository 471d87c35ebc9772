// Measures what an input needs, as far as kinds, shapes and counts tell: engine.md 6, S-3 and S-4.
#include <array>

#include "embertable/errors.h"
#include "input/detected_shape.h"
#include "serving/input.h"

namespace embertable::serving {
namespace {

void take_weights(Input& in, const FeatureWeights& weights) {
  in.weights = input::weights_of_kind(*in.ids, weights, place_of(in));
  if (in.feature->max_sequence_length > 0)
    refuse(in, "a feature with a max_sequence_length takes no weights, got " +
                   std::to_string(in.weights.size()));
  in.weighted = true;
}

/// Returns the first `rank` of dims, followed by dim.
Shape activation_shape(const Input& in, std::span<const std::int64_t> dims) {
  if (dims.size() >= static_cast<std::size_t>(Shape::kMaxRank))
    refuse(in, "the activations must have rank " + std::to_string(Shape::kMaxRank) +
                   " or less, got " + std::to_string(dims.size() + 1));
  std::array<std::int64_t, Shape::kMaxRank> all;
  std::copy(dims.begin(), dims.end(), all.begin());
  all[dims.size()] = in.rows.dim;
  return Shape(std::span<const std::int64_t>(all.data(), dims.size() + 1));
}

void set_outputs(Input& in, std::int64_t samples) {
  const bool fits = samples <= input::kMostEntries && in.entries <= input::kMostEntries &&
                    (in.sequence == 0 || samples <= input::kMostEntries / in.sequence);
  if (!fits)
    refuse(in, "must have at most " + std::to_string(input::kMostEntries) +
                   " ids and output rows, got " + std::to_string(in.entries) + " and " +
                   std::to_string(samples) +
                   (in.sequence > 0 ? " times " + std::to_string(in.sequence) : ""));
  in.outputs = in.sequence > 0 ? samples * in.sequence : samples;
}

Shape measure_dense(Input& in, const DenseIds& ids) {
  in.entries = ids.values.size();
  in.combiner = Combiner::kSum;
  if (in.feature->max_sequence_length > 0)
    refuse(in, "dense ids are no sequence: max_sequence_length must be 0, got " +
                   std::to_string(in.feature->max_sequence_length));
  set_outputs(in, in.entries);
  if (!ids.shape.has_rank()) return activation_shape(in, std::span(&in.entries, 1));
  if (!ids.shape.fully_defined() || ids.shape.num_elements() != in.entries)
    refuse(in, "dense ids of shape " + ids.shape.to_string() +
                   " must have a known shape with one element each, got " +
                   std::to_string(in.entries) + " ids");
  return activation_shape(in, ids.shape.dims());
}

Shape measure_sparse(Input& in, const SparseIds& ids) {
  in.entries = ids.values.size();
  const Shape& shape = ids.dense_shape;
  const int rank = shape.rank();
  std::int64_t samples = 1;
  bool known = rank >= 2;
  for (int axis = 0; axis < rank; ++axis) {
    known = known && shape[axis] != Shape::kUnknown;
    if (axis + 1 < rank && __builtin_mul_overflow(samples, shape[axis], &samples))
      samples = input::kMostEntries + 1;
  }
  if (!known) refuse(in, input::broken_rank_rule(*in.ids));
  input::require_indices(ids, place_of(in));
  const auto& [table, length, validate, output_shape, name] = *in.feature;
  if (length > 0 && !output_shape.has_rank() && rank == 2) {
    in.sequence = length;
    in.combiner = Combiner::kSum;
    set_outputs(in, samples);
    return activation_shape(in, std::array{samples, length});
  }
  in.prune = in.form.prunes && (validate || rank > 2);
  set_outputs(in, samples);
  return activation_shape(in, shape.dims().first(rank - 1));
}

/// Measures the rows of a configured shape: one for each row of ids, or the same number for each.
Shape measure_ragged_in_shape(Input& in, std::int64_t rows) {
  const Shape& shape = in.feature->output_shape;
  const std::int64_t elements = shape.fully_defined() ? shape.num_elements() : -1;
  if (rows != elements) {
    if (rows == 0 || elements < rows || elements % rows != 0)
      refuse(in, "output_shape " + shape.to_string() +
                     " must be known and have as many elements as ragged ids have rows, or a "
                     "multiple, got " +
                     std::to_string(rows) + " rows");
    in.sequence = elements / rows;
    in.combiner = Combiner::kSum;
  }
  set_outputs(in, rows);
  return activation_shape(in, shape.dims());
}

Shape measure_ragged(Input& in, const RaggedIds& ids) {
  in.entries = ids.values.size();
  const std::int64_t rows = ids.row_splits.size() - 1;
  input::require_ends(ids.row_splits, in.entries, place_of(in));
  if (in.feature->output_shape.has_rank()) return measure_ragged_in_shape(in, rows);
  const std::int64_t length = in.feature->max_sequence_length;
  if (length == 0) {
    set_outputs(in, rows);
    return activation_shape(in, std::span(&rows, 1));
  }
  in.sequence = length;
  in.combiner = Combiner::kSum;
  set_outputs(in, rows);
  return activation_shape(in, std::array{rows, length});
}

}  // namespace

void refuse(const Input& in, const std::string& rule) {
  throw ValueError(input::subject_of(place_of(in)) + ": " + rule);
}

Shape measure(Input& in, const FeatureWeights* weights) {
  in.weighted = in.prune = false;
  in.sequence = 0;
  in.combiner = in.feature->table->combiner;
  if (weights != nullptr && weights->index() != 0) take_weights(in, *weights);
  Shape shape;
  if (const auto* dense = std::get_if<DenseIds>(in.ids)) {
    shape = measure_dense(in, *dense);
  } else if (const auto* sparse = std::get_if<SparseIds>(in.ids)) {
    shape = measure_sparse(in, *sparse);
  } else {
    shape = measure_ragged(in, std::get<RaggedIds>(*in.ids));
  }
  if (in.weighted) input::require_weights(in.entries, in.weights.size(), place_of(in));
  if (in.sequence > 0) in.weighted = false;
  return shape;
}

}  // namespace embertable::serving
