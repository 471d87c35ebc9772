#include "input/batch_rules.h"

#include "embertable/errors.h"

namespace embertable::input {

std::string subject_of(const DataPlace& place) {
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
