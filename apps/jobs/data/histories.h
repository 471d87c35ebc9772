#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/data/ranking.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/spec/model.h"
#include "apps/jobs/spec/split.h"
#include "apps/jobs/text/csv_reader.h"
#include "apps/jobs/text/field_rule.h"

namespace embertable::jobs {

/// Keys of users, items or what items have.
struct KeysSpec {
  std::string name = "";  ///< name of the ids
  KeyKind kind = KeyKind::kInteger;
  bool sorted = false;  ///< numbered in rising order, else as they come
};

/// Where users and their items stand: in lines `user item item ...`, or in records of one event
/// each.
struct HistoriesSpec {
  bool lists = false;
  std::vector<std::string> files;       ///< relative to the data folder
  std::vector<std::string> test_files;  ///< lists: of the test part; empty: none
  KeysSpec users, items;

  // Used when the file holds records:
  CsvFormat format;
  std::string user, item;  ///< columns
  std::string time;        ///< column that orders a user's events; "": the order of the file
  std::string once_per;  ///< column: of a user, an item counts once for each of its values; "": no
  std::vector<FieldRule> where;

  std::int64_t min_events = 1;  ///< users with fewer are left out
};

/// Which events are measured: those whose pair of keys falls into bucket 0 and 1 of the split rule,
/// or the last and the last but one of each user. Without training those of a test file are.
struct HistoriesSplit {
  bool last = false;
  std::uint64_t salt = 0;
  bool train_on_validation = false;  ///< the validation part trains too
};

/// Users with their items in order.
struct Histories {
  Vocabulary users, items;
  std::vector<std::int64_t> splits = {0};  ///< [users + 1]
  std::vector<std::int32_t> events;        ///< the items of a user, user after user
  std::vector<Part> part;                  ///< by event
  std::int64_t left_out = 0;               ///< broken lines

  std::int64_t num_users() const noexcept { return std::ssize(splits) - 1; }
};

/// Reads users and items from files, or what an earlier run has left in their cache. Leaves out at
/// most the number of broken lines in the options, over all files together. Throws IoError,
/// DataLoss or ValueError naming file, line and column; ValueError if no event is left.
Histories read_histories(const HistoriesSpec& spec, const HistoriesSplit& split,
                         const DataOptions& options);

/// The different items of each user in some parts, rising.
struct ItemSets {
  std::vector<std::int64_t> splits = {0};  ///< [users + 1]
  std::vector<std::int32_t> items;

  ListsView view() const noexcept { return {splits, items}; }
};

/// The items in the parts from `first` to `last`, as Part numbers them.
ItemSets item_sets(const Histories& histories, Part first, Part last);

/// What is in a set of `from` and not in that of `without`.
ItemSets difference(const ItemSets& from, const ItemSets& without);

/// A hash each of the users, the items and the events with their parts.
std::map<std::string, std::string> data_digests(const Histories& histories);

}  // namespace embertable::jobs
