#include <algorithm>
#include <string>

#include "base/assert.h"
#include "embertable/errors.h"
#include "input/feature_reader.h"
#include "kernels/narrow.h"

namespace embertable {
namespace {

using input::EntryTile;

/// Returns the row of a ragged feature that has the entry. Requires: splits rise.
std::int64_t row_of(const IntegerSpan& splits, std::int64_t entry) {
  std::int64_t begin = 0;
  for (std::int64_t count = splits.size(); count > 0;) {
    const std::int64_t half = count / 2;
    const bool before = splits[begin + half] <= entry;
    begin += before ? half + 1 : 0;
    count = before ? count - half - 1 : half;
  }
  return begin - 1;
}

}  // namespace

void FeatureReader::refuse(const std::string& rule) const {
  throw ValueError("feature '" + copy_.spec->path + "', replica " + std::to_string(replica_) +
                   ": " + rule);
}

void FeatureReader::refuse_data(std::int64_t sample, std::int64_t position,
                                const std::string& rule) const {
  std::string message = "feature '" + copy_.spec->path + "', replica " + std::to_string(replica_);
  if (sample >= 0) message += ", sample " + std::to_string(sample);
  if (position >= 0) message += ", position " + std::to_string(position);
  throw DataError(message + ": " + rule, {copy_.spec->path, replica_, sample, position});
}

void FeatureReader::refuse_number(std::string_view what, std::int64_t number) const {
  refuse("a feature must have fewer than 2^31 " + std::string(what) + " per replica, got " +
         std::to_string(number));
}

void FeatureReader::refuse_dense(const DenseIds& ids) const {
  const std::int64_t count = ids.values.size();
  if (ids.shape.has_rank() && ids.shape.num_elements() != count) {
    refuse("dense ids of shape " + ids.shape.to_string() + " must number " +
           std::to_string(ids.shape.num_elements()) + ", got " + std::to_string(count));
  }
  refuse("dense ids must give one id per element of output shape " +
         copy_.spec->output_shape.to_string() + ", got " + std::to_string(count));
}

/// Refuses row splits that do not go from 0 to the number of ids.
void FeatureReader::refuse_ends(const RaggedIds& ids) const {
  const std::int64_t rows = splits_.size() - 1;
  if (rows < 0) refuse_data(-1, -1, "row_splits must have one number or more, got none");
  if (splits_[0] != 0)
    refuse_data(-1, 0, "row_splits must start at 0, got " + std::to_string(splits_[0]));
  refuse_data(-1, rows,
              "row_splits must end at the number of ids, " + std::to_string(ids.values.size()) +
                  ", got " + std::to_string(splits_[rows]));
}

std::int64_t FeatureReader::output_of(std::int64_t position) const {
  if (kind_ == Kind::kDense) return position;
  if (kind_ == Kind::kSparse) {
    return output_row_of(coordinates_, place_of(coordinates_, position));
  }
  const std::int64_t row = std::max<std::int64_t>(0, row_of(splits_, position));
  return sequence_ > 0 ? row * sequence_ + (position - splits_[row]) : row;
}

void FeatureReader::refuse_first_offence() const {
  const auto split = std::find_if(tile_.begin(), tile_.end(),
                                  [](const EntryTile& tile) { return tile.bad_split >= 0; });
  if (split != tile_.end()) {
    const std::int64_t at = split->bad_split;
    refuse_data((at - 1) * std::max<std::int64_t>(sequence_, 1), at,
                "row_splits must not fall, got " + std::to_string(splits_[at]) + " after " +
                    std::to_string(splits_[at - 1]));
  }
  if (kind_ == Kind::kRagged && !tiles_adjoin())
    refuse_data(-1, -1, "row_splits must not change during the call");
  if (outside_ >= 0) refuse_data(-1, outside_, broken_index_rule(coordinates_, outside_));
  const auto id = std::find_if(tile_.begin(), tile_.end(),
                               [](const EntryTile& tile) { return tile.bad_entry >= 0; });
  EMBERTABLE_ASSERT(id != tile_.end());
  const std::int64_t entry = id->bad_entry;
  const std::int64_t position = sorted_.used ? sorted_.order[entry].entry : entry;
  refuse_data(output_of(position), position,
              "id must be in 0.." + std::to_string(copy_.spec->vocabulary_size - 1) +
                  " (vocabulary_size " + std::to_string(copy_.spec->vocabulary_size) + "), got " +
                  std::to_string(copy_.ids[entry]));
}

}  // namespace embertable
