#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/convert/saved_model.h"
#include "apps/jobs/data/new_raters.h"
#include "apps/jobs/data/ranking.h"
#include "apps/jobs/models/mf.h"
#include "apps/jobs/spec/predictor.h"

namespace embertable::jobs {

/// Gives users the items with the highest predictions, except those that they have in the rows or
/// in what was trained on, a line for each:
///   "user"  mean + user_bias + item_bias + <user, item + sides>,
///   "item"  of a user without a row: mean + item_bias.
/// Between equal scores the item with the lower row is first. Rows that rare keys share are no
/// items. Memory grows with the users in the rows.
class MfRecommender final : public Predictor {
 public:
  /// Spec and parts are borrowed. Throws ValueError for an invalid number of items, for items that
  /// are hashed, and for a side that is not of the items.
  MfRecommender(const SavedParts& saved, const MfSpec& spec, const NewRows& rows);

  std::vector<ScoreColumn> columns() const override;
  bool next(Executor& executor, ScoreSink& sink) override;
  const RowCounts& counts() const override { return counts_; }

 private:
  void make_items(const SavedParts& saved);
  void give_lines(std::int64_t user, std::span<const std::int32_t> ranked, ScoreSink& sink) const;
  float score(const NewRater& user, std::int32_t item) const;

  const MfSpec& spec_;
  const IdsSpec& user_ids_;
  const IdsSpec& item_ids_;
  std::int64_t most_;  ///< items of a user's list
  float mean_ = 0;
  SavedTableRows users_, items_;
  std::optional<SavedTableRows> user_bias_, item_bias_;
  SavedLists known_;        ///< by row of a user; no splits: not saved
  std::int64_t num_items_;  ///< rows of items that are one key's alone
  NewRaters read_;
  std::vector<float> vectors_;  ///< [num_items_, dim + 1]: items, their bias
  std::int64_t next_ = 0;       ///< the first user without lines
  RowCounts counts_;
};

}  // namespace embertable::jobs
