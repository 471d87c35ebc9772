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
#include "apps/jobs/text/broken_record.h"
#include "apps/jobs/text/csv_reader.h"
#include "apps/jobs/text/field_rule.h"

namespace embertable::jobs {

/// The keys of users, of items or of items' attributes.
struct KeysSpec {
  std::string name = "";  ///< name of the ids
  KeyKind kind = KeyKind::kInteger;
  bool sorted = false;  ///< numbered in rising order, else in the order read
};

/// Files with users and their items: lines `user item item ...`, or records of one event each.
struct HistoriesSpec {
  bool lists = false;
  std::vector<std::string> files;       ///< relative to the data folder
  std::vector<std::string> test_files;  ///< test part of list files; empty: none
  KeysSpec users, items;

  // The following fields are for files of records.
  CsvFormat format;
  std::string user, item;  ///< columns
  std::string time;        ///< column that orders a user's events; "": the order of the file
  std::string once_per;  ///< column: of a user, an item counts once for each of its values; "": no
  std::vector<FieldRule> where;

  std::int64_t min_events = 1;  ///< users with fewer are left out
};

/// Which events are measured: those whose pair of keys falls into buckets 0 and 1 of the split
/// rule, or the last and the last but one of each user. Events of test files are measured and do
/// not train.
struct HistoriesSplit {
  bool last = false;
  std::uint64_t salt = 0;
  bool train_on_validation = false;  ///< the validation part trains too
};

/// Users with their items in order.
struct Histories {
  Vocabulary users, items;
  std::vector<std::int64_t> splits = {0};         ///< [users + 1]
  std::vector<std::int32_t> events;               ///< the items of a user, user after user
  std::vector<Part> part;                         ///< by event
  LeftOut left_out;                               ///< broken lines
  std::int64_t empty_users = 0, empty_items = 0;  ///< records whose key is empty

  std::int64_t num_users() const noexcept { return std::ssize(splits) - 1; }
};

/// Reads users and items from files, or what an earlier run has left in their cache. Leaves out at
/// most the number of broken lines in the options, over all files together. Throws IoError,
/// DataLoss or ValueError naming file, line and column; ValueError if no event is left.
Histories read_histories(const HistoriesSpec& spec, const HistoriesSplit& split,
                         const DataOptions& options);

/// The distinct items of each user in some parts, rising.
struct ItemSets {
  std::vector<std::int64_t> splits = {0};  ///< [users + 1]
  std::vector<std::int32_t> items;

  ListsView view() const noexcept { return {splits, items}; }
};

/// Returns the items in the parts from `first` to `last`, as Part numbers them.
ItemSets item_sets(const Histories& histories, Part first, Part last);

/// Returns the items in each set of `from` that are not in that of `without`.
ItemSets difference(const ItemSets& from, const ItemSets& without);

/// Returns the number of events of a part whose item is in the user's set.
std::int64_t count_repeated(const Histories& histories, Part part, const ItemSets& sets);

/// Returns a hash of the users, one of the items and one of the events with their parts.
std::map<std::string, std::string> data_digests(const Histories& histories);

}  // namespace embertable::jobs
