#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/data/ranking.h"
#include "apps/jobs/spec/predictor.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Users with their items, as rows that a run has given them.
struct NewUsers {
  std::vector<std::string> keys;  ///< spelled as in the text
  std::vector<std::int64_t> splits = {0};
  std::vector<std::int32_t> items;   ///< in their order, without items that have no row
  std::vector<std::int64_t> unseen;  ///< by user: items that were left out

  std::int64_t size() const noexcept { return std::ssize(keys); }
  ListsView histories() const noexcept { return {splits, items}; }
  void clear();

  /// These begin another user, end the current one, and discard the one that was begun.
  void begin(std::string key);
  void end() { splits.push_back(std::ssize(items)); }
  void take_back();
};

/// Reads users in the format of a job's histories.
class NewHistories {
 public:
  virtual ~NewHistories() = default;

  /// Replaces `users` by the next ones, at most `most`. Returns false at the end. Throws as the
  /// readers.
  virtual bool read(std::int64_t most, NewUsers& users) = 0;

  /// Returns the broken lines so far.
  virtual const LeftOut& left_out() const = 0;

  /// Returns the columns that the text lacks, though the job reads them: of items, without which a
  /// user has none, of rules, which then leave nothing out, and of times, without which the order
  /// of the text counts.
  virtual std::vector<std::string> absent() const { return {}; }
};

/// In list files each line is one user, with or without items; a malformed line drops the user. In
/// record files a user is all of its valid records, at the position of the first; an empty item
/// counts as no item, and if `users_alone` the column of items may be absent; memory grows with the
/// events. `items` has the rows by key. Spec and map are borrowed.
std::unique_ptr<NewHistories> open_histories(const HistoriesSpec& spec, const IdMap& items,
                                             bool users_alone, const NewRows& rows);

}  // namespace embertable::jobs
