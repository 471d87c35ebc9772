#include "input/batch_rules.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "embertable/errors.h"

namespace embertable::input {

std::string subject_of(const DataPlace& place) {
  if (!place.call.empty()) return std::string(place.call);
  const std::string feature = "feature '" + place.path + "'";
  return place.replica < 0 ? feature : feature + ", replica " + std::to_string(place.replica);
}

void refuse_data(const DataPlace& place, const std::string& rule) {
  std::string message = subject_of(place);
  if (place.sample >= 0) message += ", sample " + std::to_string(place.sample);
  if (place.position >= 0) message += ", position " + std::to_string(place.position);
  throw DataError(message + ": " + rule, {.feature = place.path,
                                          .replica = place.replica,
                                          .sample = place.sample,
                                          .position = place.position});
}

std::string id_rule(std::int64_t rows, std::int64_t id) {
  return "id must be in 0.." + std::to_string(rows - 1) + " (vocabulary_size " +
         std::to_string(rows) + "), got " + std::to_string(id);
}

FloatSpan weights_of_kind(const FeatureIds& ids, const FeatureWeights& weights,
                          const DataPlace& place) {
  constexpr std::string_view kNames[] = {"no", "sparse", "ragged", "dense"};
  const auto refuse = [&](const std::string& rule) {
    throw ValueError(subject_of(place) + ": " + rule + ", got " +
                     std::string(kNames[weights.index()]) + " weights");
  };
  const auto* const sparse = std::get_if<SparseWeights>(&weights);
  const auto* const ragged = std::get_if<RaggedWeights>(&weights);
  if (std::holds_alternative<DenseIds>(ids)) refuse("dense ids have no weights");
  if (std::holds_alternative<SparseIds>(ids) && !sparse)
    refuse("weights of sparse ids must be sparse");
  if (std::holds_alternative<RaggedIds>(ids) && !ragged)
    refuse("weights of ragged ids must be ragged");
  return sparse ? sparse->values : ragged->values;
}

void require_weights(std::int64_t ids, std::int64_t weights, const DataPlace& place) {
  if (weights != ids)
    refuse_data(place, "weights must be as many as the ids, " + std::to_string(ids) + ", got " +
                           std::to_string(weights));
}

void require_indices(const SparseIds& ids, const DataPlace& place) {
  const std::int64_t entries = ids.values.size(), rank = ids.dense_shape.rank();
  if (ids.indices.size() != entries * rank)
    refuse_data(place, "indices must be [" + std::to_string(entries) + ", " + std::to_string(rank) +
                           "], one row per id, got " + std::to_string(ids.indices.size()) +
                           " numbers");
}

void refuse_fall(const IntegerSpan& splits, std::int64_t split, std::int64_t sequence,
                 DataPlace place) {
  place.sample = (split - 1) * std::max<std::int64_t>(sequence, 1);
  place.position = split;
  refuse_data(place, "row_splits must not fall, got " + std::to_string(splits[split]) + " after " +
                         std::to_string(splits[split - 1]));
}

void refuse_changing_splits(const DataPlace& place) {
  refuse_data(place, "row_splits must not change during the call");
}

void require_ends(const IntegerSpan& row_splits, std::int64_t ids, DataPlace place) {
  const std::int64_t rows = row_splits.size() - 1;
  if (rows < 0) refuse_data(place, "row_splits must have one number or more, got none");
  place.position = 0;
  if (row_splits[0] != 0)
    refuse_data(place, "row_splits must start at 0, got " + std::to_string(row_splits[0]));
  place.position = rows;
  if (row_splits[rows] != ids)
    refuse_data(place, "row_splits must end at the number of ids, " + std::to_string(ids) +
                           ", got " + std::to_string(row_splits[rows]));
}

}  // namespace embertable::input
