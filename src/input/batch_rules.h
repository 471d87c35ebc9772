#pragma once

#include <cstdint>
#include <string>

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
};

/// Returns "feature 'user', replica 1".
std::string subject_of(const DataPlace& place);

/// Throws DataError: "feature 'user', replica 1, sample 2, position 7: <rule>".
[[noreturn]] void refuse_data(const DataPlace& place, const std::string& rule);

/// Returns the rule that an id outside of a table of `rows` rows breaks.
std::string id_rule(std::int64_t rows, std::int64_t id);

/// Throws DataError unless there are splits that go from 0 to the number of ids. `place` has the
/// feature and the replica.
void require_ends(const IntegerSpan& row_splits, std::int64_t ids, DataPlace place);

}  // namespace embertable::input
