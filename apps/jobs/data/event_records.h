#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/jobs/data/histories.h"
#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/csv_reader.h"
#include "apps/jobs/text/field_rule.h"

namespace embertable::jobs {

/// Collects users' events from records of one event each.
class EventRecords {
 public:
  /// One event; the numbers index users() and items().
  struct Event {
    std::int32_t user;
    std::int32_t item;  ///< kNoItem: the field is empty
  };
  static constexpr std::int32_t kNoItem = -1;

  /// What the events are for. Those of rows to score may have an empty item, which is none, and
  /// their file may lack the columns of rules, times and groups; where users can be scored without
  /// items, that of items too.
  enum class Purpose : std::uint8_t { kTraining, kScoring, kScoringUsers };

  /// The spec is borrowed.
  explicit EventRecords(const HistoriesSpec& spec, Purpose purpose = Purpose::kTraining);

  /// Reads the records of a file that count, and leaves out at most `skip_bad` broken ones. Returns
  /// them. Throws what CsvReader throws, ValueError for 2^31 events.
  LeftOut read(const std::string& path, std::int64_t skip_bad = 0);

  /// Returns the events by rising time, those of equal times in the order read, without repeated
  /// ones that count once. Requires: the last file was read.
  std::vector<Event> in_order();

  /// Keys in the order in which they are first seen.
  Vocabulary& users() noexcept { return users_; }
  Vocabulary& items() noexcept { return items_; }

  /// Columns of items, rules, times and groups that the last file lacks.
  const std::vector<std::string>& absent() const noexcept { return absent_; }

  /// Number of records that count whose key is empty.
  std::int64_t empty_users() const noexcept { return empty_users_; }
  std::int64_t empty_items() const noexcept { return empty_items_; }

 private:
  struct Record {
    std::int32_t user, item, group;
    std::int64_t time;
  };

  void add(const CsvReader& reader);
  void drop_repeated();

  const HistoriesSpec& spec_;
  const Purpose purpose_;
  std::vector<std::string> columns_, absent_;
  Vocabulary users_, items_;
  Vocabulary groups_{KeyKind::kString};
  std::vector<Record> records_;
  std::int64_t empty_users_ = 0, empty_items_ = 0;
  TimeFields times_;
};

}  // namespace embertable::jobs
