#include "apps/jobs/data/event_records.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_set>

#include "apps/jobs/spec/split.h"
#include "base/hash.h"
#include "base/random.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Whoever chooses users and items of the data must not choose the places of their pairs.
struct PairHash {
  std::size_t operator()(std::uint64_t pair) const noexcept {
    return mix_bits(pair ^ process_seed());
  }
};

std::int32_t add_field(const CsvReader& reader, std::size_t field, Vocabulary& keys) {
  return keys.kind() == KeyKind::kInteger ? keys.add(reader.integer(field))
                                          : keys.add(reader.text(field));
}

}  // namespace

EventRecords::EventRecords(const HistoriesSpec& spec, Purpose purpose)
    : spec_(spec),
      purpose_(purpose),
      columns_{spec.user, spec.item},
      users_(spec.users.kind),
      items_(spec.items.kind) {
  for (const FieldRule& rule : spec.where) columns_.push_back(rule.column);
  if (!spec.time.empty()) columns_.push_back(spec.time);
  if (!spec.once_per.empty()) columns_.push_back(spec.once_per);
}

LeftOut EventRecords::read(const std::string& path, std::int64_t skip_bad) {
  const std::size_t optional = purpose_ == Purpose::kTraining  ? columns_.size()
                               : purpose_ == Purpose::kScoring ? 2
                                                               : 1;  // user, then item
  CsvReader reader(std::span(&path, 1), spec_.format, columns_, skip_bad, optional);
  absent_.clear();
  for (std::size_t i = optional; i < columns_.size(); ++i) {
    const bool is_new = std::find(absent_.begin(), absent_.end(), columns_[i]) == absent_.end();
    if (!reader.has(i) && is_new) absent_.push_back(columns_[i]);
  }
  while (reader.next()) {
    try {
      if (hold(spec_.where, reader, 2)) add(reader);
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  return reader.left_out();
}

/// Adds the user last, so that every user has a valid record.
void EventRecords::add(const CsvReader& reader) {
  if (records_.size() == static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw ValueError("histories must have fewer than 2^31 events, got one more");
  Record record{.user = 0, .item = kNoItem, .group = 0, .time = 0};
  std::size_t next = 2 + spec_.where.size();
  if (!spec_.time.empty()) {
    if (reader.has(next)) record.time = times_.read(reader, next);
    ++next;
  }
  if (purpose_ == Purpose::kTraining || !reader.text(1).empty())
    record.item = add_field(reader, 1, items_);
  record.user = add_field(reader, 0, users_);
  if (!spec_.once_per.empty()) record.group = groups_.add(reader.text(next));
  records_.push_back(record);
  empty_users_ += reader.text(0).empty() ? 1 : 0;
  empty_items_ += reader.text(1).empty() ? 1 : 0;
}

/// Keeps the first record of each user, item and group.
void EventRecords::drop_repeated() {
  std::vector<std::unordered_set<std::uint64_t, PairHash>> seen(users_.size());
  std::erase_if(records_, [&](const Record& record) {
    return record.item != kNoItem &&
           !seen[record.user].insert(pair_key(record.group, record.item)).second;
  });
}

std::vector<EventRecords::Event> EventRecords::in_order() {
  if (!spec_.time.empty())
    std::stable_sort(records_.begin(), records_.end(),
                     [](const Record& a, const Record& b) { return a.time < b.time; });
  const bool has_groups =
      std::find(absent_.begin(), absent_.end(), spec_.once_per) == absent_.end();
  if (!spec_.once_per.empty() && has_groups) drop_repeated();
  std::vector<Event> events;
  events.reserve(records_.size());
  for (const Record& record : records_) events.push_back({record.user, record.item});
  return events;
}

}  // namespace embertable::jobs
