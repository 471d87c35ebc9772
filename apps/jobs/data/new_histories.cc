#include "apps/jobs/data/new_histories.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "apps/jobs/data/event_records.h"
#include "apps/jobs/text/token_reader.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Reads lines `user item item ...`.
class UserLines final : public NewHistories {
 public:
  UserLines(const HistoriesSpec& spec, const IdMap& items, const NewRows& rows)
      : spec_(spec),
        items_(items),
        skip_bad_(rows.skip_bad),
        reader_(std::span(&rows.path, 1), rows.skip_bad.most()) {}

  bool read(std::int64_t most, NewUsers& users) override {
    users.clear();
    for (;;) {
      try {
        if (!held_ && !reader_.next()) break;
        held_ = reader_.begins_line() && users.size() == most;
        if (held_) break;
        take(users);
      } catch (const BrokenRecord&) {
        leave_out(users);
      }
    }
    if (open_) users.end();
    open_ = false;
    if (users.size() == 0) check_share(skip_bad_, reader_.left_out());
    return users.size() > 0;
  }

  const LeftOut& left_out() const override { return reader_.left_out(); }

 private:
  void take(NewUsers& users) {
    if (reader_.begins_line()) {
      if (open_) users.end();
      open_ = false;
      if (spec_.users.kind == KeyKind::kInteger) reader_.integer();
      users.begin(std::string(reader_.text()));
      open_ = true;
    } else {
      const std::optional<std::int64_t> row = items_.kind() == KeyKind::kInteger
                                                  ? items_.find(reader_.integer())
                                                  : items_.find(reader_.text());
      if (row)
        users.items.push_back(static_cast<std::int32_t>(*row));
      else
        ++users.unseen.back();
    }
  }

  /// Leaves out the rest of the line too. Called in a handler.
  void leave_out(NewUsers& users) {
    reader_.leave_out();
    reader_.skip_line();
    if (open_) reader_.begins_line() ? users.end() : users.take_back();
    open_ = false;
  }

  const HistoriesSpec& spec_;
  const IdMap& items_;
  const SkipBad skip_bad_;
  TokenReader reader_;
  bool held_ = false;  ///< the reader's token begins the next user
  bool open_ = false;  ///< a user is begun
};

/// Reads records of one event each, and groups them by user.
class UserRecords final : public NewHistories {
 public:
  UserRecords(const HistoriesSpec& spec, const IdMap& items, bool users_alone, const NewRows& rows)
      : records_(spec, users_alone ? EventRecords::Purpose::kScoringUsers
                                   : EventRecords::Purpose::kScoring),
        left_out_(records_.read(rows.path, rows.skip_bad.most())) {
    check_share(rows.skip_bad, left_out_);
    const Vocabulary& keys = records_.items();
    for (std::int32_t item = 0; item < keys.size(); ++item) {
      const std::optional<std::int64_t> row = keys.kind() == KeyKind::kInteger
                                                  ? items.find(keys.integer(item))
                                                  : items.find(keys.text(item));
      row_of_.push_back(static_cast<std::int32_t>(row.value_or(-1)));
    }
    sort_by_user(records_.in_order());
  }

  bool read(std::int64_t most, NewUsers& users) override {
    users.clear();
    const Vocabulary& keys = records_.users();
    for (; next_ < keys.size() && users.size() < most; ++next_) {
      users.begin(keys.shown(next_));
      const auto user = static_cast<std::size_t>(next_);
      for (auto i = begin_[user]; i < begin_[user + 1]; ++i) {
        const std::int32_t item = events_[i];
        if (item == EventRecords::kNoItem) continue;
        const std::int32_t row = row_of_[item];
        if (row >= 0)
          users.items.push_back(row);
        else
          ++users.unseen.back();
      }
      users.end();
    }
    return users.size() > 0;
  }

  const LeftOut& left_out() const override { return left_out_; }
  std::vector<std::string> absent() const override { return records_.absent(); }

 private:
  void sort_by_user(const std::vector<EventRecords::Event>& events) {
    begin_.resize(static_cast<std::size_t>(records_.users().size()) + 1);
    for (const EventRecords::Event& event : events) ++begin_[event.user + 1];
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    std::vector<std::int64_t> next = begin_;
    events_.resize(events.size());
    for (const EventRecords::Event& event : events) {
      events_[next[event.user]++] = event.item;
    }
  }

  EventRecords records_;
  LeftOut left_out_;
  std::vector<std::int32_t> row_of_;  ///< by item of records_, -1: none
  std::vector<std::int64_t> begin_;   ///< by user: in events_
  std::vector<std::int32_t> events_;  ///< items by user, in their order
  std::int32_t next_ = 0;             ///< user
};

}  // namespace

void NewUsers::clear() {
  keys.clear();
  splits.assign(1, 0);
  items.clear();
  unseen.clear();
}

void NewUsers::begin(std::string key) {
  keys.push_back(std::move(key));
  unseen.push_back(0);
}

void NewUsers::take_back() {
  keys.pop_back();
  unseen.pop_back();
  items.resize(splits.back());
}

std::unique_ptr<NewHistories> open_histories(const HistoriesSpec& spec, const IdMap& items,
                                             bool users_alone, const NewRows& rows) {
  if (spec.lists) return std::make_unique<UserLines>(spec, items, rows);
  return std::make_unique<UserRecords>(spec, items, users_alone, rows);
}

}  // namespace embertable::jobs
