#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/convert/saved_model.h"
#include "apps/jobs/data/new_histories.h"
#include "apps/jobs/models/histories_model.h"
#include "apps/jobs/spec/predictor.h"
#include "embertable/serving.h"

namespace embertable::jobs {

/// Ranks the items for users, except those that they have, and gives a line for each of the best
/// with the base of its score:
///   "user"        the product with the row that the user has,
///   "history"     without such a row the product with the mean vector of the user's last items,
///   "popularity"  without known items how often the item is in what was trained on.
/// Between equal scores the item with the lower row is first.
class HistoriesPredictor final : public Predictor {
 public:
  /// Spec and parts are borrowed. Throws ValueError for an invalid number of items.
  HistoriesPredictor(const SavedParts& saved, const HistoriesModelSpec& spec, const NewRows& rows);

  std::vector<ScoreColumn> columns() const override;
  bool next(Executor& executor, ScoreSink& sink) override;
  const RowCounts& counts() const override { return counts_; }

 private:
  enum class Basis : std::uint8_t { kOfUser, kOfHistory, kOfPopularity };

  std::optional<std::int64_t> row_of_user(const std::string& key) const;
  void take_bases();
  void make_queries();
  void make_excluded();
  void count();
  void give_lines(std::int64_t user, std::span<const std::int32_t> ranked, ScoreSink& sink) const;

  RankedVectors from_;
  std::string user_ids_, item_ids_;
  std::int64_t most_;  ///< items of a user's list
  const IdMap& user_map_;
  std::unique_ptr<NewHistories> reader_;
  SavedTableRows items_;
  std::vector<float> history_;  ///< [items, dim]: vectors of the items of a history
  std::vector<float> vectors_;  ///< [items, dim + 1]: those of the ranked items, popularity
  std::optional<ServingEmbedding> users_;
  SavedLists known_;  ///< by row of a user; empty: unknown

  // The users that were read last:
  NewUsers read_;
  std::vector<std::int64_t> user_rows_;  ///< -1: none
  std::vector<Basis> bases_;
  std::vector<float> queries_;  ///< [users, dim + 1]
  std::vector<std::int64_t> excluded_splits_;
  std::vector<std::int32_t> excluded_;
  RowCounts counts_;
};

}  // namespace embertable::jobs
