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

/// Users with the items that they have, which a run has given their rows.
struct NewUsers {
  std::vector<std::string> keys;  ///< spelled like in the text
  std::vector<std::int64_t> splits = {0};
  std::vector<std::int32_t> items;   ///< in their order, those without a row left out
  std::vector<std::int64_t> unseen;  ///< by user: items that were left out

  std::int64_t size() const noexcept { return std::ssize(keys); }
  ListsView histories() const noexcept { return {splits, items}; }
  void clear();

  /// Begins another user, ends the running one, or takes back the one that was begun.
  void begin(std::string key);
  void end() { splits.push_back(std::ssize(items)); }
  void take_back();
};

/// Reads users in the format of a job's histories.
class NewHistories {
 public:
  virtual ~NewHistories() = default;

  /// Puts the next users, `most` or as many as there are, in the place of those of `users`. False
  /// at the end. Throws as the readers.
  virtual bool read(std::int64_t most, NewUsers& users) = 0;

  /// Broken lines so far.
  virtual std::int64_t left_out() const = 0;
};

/// In list files each line is one user, with or without items; a malformed line drops the user. In
/// record files a user is all of its valid records, at the position of the first; an empty item is
/// none; memory grows with the events. `items`: by key. Spec and map are borrowed.
std::unique_ptr<NewHistories> open_histories(const HistoriesSpec& spec, const IdMap& items,
                                             const NewRows& rows);

}  // namespace embertable::jobs
