#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "embertable/batch.h"

namespace embertable::input {

/// Most ids and most output rows of one feature in one replica's batch.
inline constexpr std::int64_t kMostEntries = (std::int64_t{1} << 31) - 1;

/// Where an error is: a feature by its path, and a replica, sample and position; -1: none.
struct DataPlace {
  const std::string& path;
  std::int32_t replica = -1;
  std::int64_t sample = -1;
  std::int64_t position = -1;

  /// Names a call whose ids are those of no feature, such as "lookup". Empty: they have one.
  std::string_view call = {};

  /// Returns the place of such a call.
  static DataPlace of_call(std::string_view call) {
    static const std::string none;
    return {.path = none, .call = call};
  }
};

/// Returns "feature 'user', replica 1", or the name of a call.
std::string subject_of(const DataPlace& place);

/// Throws DataError: "feature 'user', replica 1, sample 2, position 7: <rule>".
[[noreturn]] void refuse_data(const DataPlace& place, const std::string& rule);

/// Returns the rule that an id outside of a table of `rows` rows breaks.
std::string id_rule(std::int64_t rows, std::int64_t id);

// The rules of a batch. `place` has the feature and the replica.

/// Returns the numbers of weights. Throws ValueError unless they are of the kind of the ids, of
/// which dense ones have none. Requires: there are weights.
FloatSpan weights_of_kind(const FeatureIds& ids, const FeatureWeights& weights,
                          const DataPlace& place);

/// Throws DataError unless there are as many weights as ids.
void require_weights(std::int64_t ids, std::int64_t weights, const DataPlace& place);

/// Throws DataError unless each of the ids has its indices.
void require_indices(const SparseIds& ids, const DataPlace& place);

/// Throws DataError unless there are splits that go from 0 to the number of ids.
void require_ends(const IntegerSpan& row_splits, std::int64_t ids, DataPlace place);

/// Throws DataError for splits[split], which is below the one before it. `sequence`: output rows of
/// a sample, 0: one.
[[noreturn]] void refuse_fall(const IntegerSpan& splits, std::int64_t split, std::int64_t sequence,
                              DataPlace place);

/// Throws DataError for splits that another thread has changed since they were checked.
[[noreturn]] void refuse_changing_splits(const DataPlace& place);

}  // namespace embertable::input
