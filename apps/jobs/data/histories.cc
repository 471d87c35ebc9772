#include "apps/jobs/data/histories.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/data/event_records.h"
#include "apps/jobs/keys/key_list.h"
#include "apps/jobs/spec/file_spec.h"
#include "apps/jobs/text/token_reader.h"
#include "base/hash.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

struct Event {
  std::int32_t user;
  std::int32_t item;
  Part part;
};

std::int32_t add_token(const TokenReader& reader, Vocabulary& keys) {
  return keys.kind() == KeyKind::kInteger ? keys.add(reader.integer()) : keys.add(reader.text());
}

void check_count(std::size_t events) {
  if (events > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw ValueError("histories must have fewer than 2^31 events, got one more");
}

/// Reads lines `user item item ...`, whose events count once the line is known to be whole.
class ListReader {
 public:
  ListReader(Part part, Histories& read, std::vector<Event>& events)
      : part_(part), read_(read), events_(events), user_(read.users.kind()), line_(events.size()) {}

  void read(const std::vector<std::string>& paths, std::int64_t skip_bad) {
    TokenReader reader(paths, skip_bad - read_.left_out.total());
    for (bool more = true; more;) {
      try {
        more = reader.next();
        if (more) take(reader);
      } catch (const BrokenRecord&) {
        if (reader.begins_line()) end_line();
        reader.leave_out();
        reader.skip_line();
        events_.resize(line_);
        user_.clear();
      }
    }
    end_line();
    read_.left_out += reader.left_out();
  }

 private:
  void take(const TokenReader& reader) {
    if (reader.begins_line()) {
      end_line();
      return user_.add(reader);
    }
    events_.push_back({0, add_token(reader, read_.items), part_});
    check_count(events_.size());
  }

  void end_line() {
    if (events_.size() > line_) {
      const std::int32_t user = user_.number(0, read_.users);
      for (; line_ < events_.size(); ++line_) events_[line_].user = user;
    }
    user_.clear();
  }

  Part part_;
  Histories& read_;
  std::vector<Event>& events_;
  KeyList user_;      ///< the user's key in the current line
  std::size_t line_;  ///< its first event
};

void read_records(const HistoriesSpec& spec, const DataOptions& options, Histories& read,
                  std::vector<Event>& events) {
  EventRecords records(spec);
  for (const std::string& path : paths_in(options.root, spec.files))
    read.left_out += records.read(path, options.skip_bad.most() - read.left_out.total());
  read.empty_users = records.empty_users();
  read.empty_items = records.empty_items();
  for (const EventRecords::Event& event : records.in_order())
    events.push_back({event.user, event.item, Part::kTraining});
  read.users = std::move(records.users());
  read.items = std::move(records.items());
}

std::int32_t copy_key(const Vocabulary& from, std::int32_t id, Vocabulary& to) {
  return from.kind() == KeyKind::kInteger ? to.add(from.integer(id)) : to.add(from.text(id));
}

/// Returns the events by user: users that have enough of them in the order of their first event,
/// and their items in the order read.
Histories by_user(const Histories& read, const std::vector<Event>& events,
                  const HistoriesSpec& spec) {
  std::vector<std::int64_t> next(static_cast<std::size_t>(read.users.size()) + 1);
  for (const Event& event : events) ++next[event.user + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::int64_t> begin = next;
  std::vector<std::int32_t> order(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    order[next[events[i].user]++] = static_cast<std::int32_t>(i);
  }
  Histories kept{.users = Vocabulary(spec.users.kind), .items = Vocabulary(spec.items.kind)};
  kept.left_out = read.left_out;
  kept.empty_users = read.empty_users;
  kept.empty_items = read.empty_items;
  for (std::int32_t user = 0; user < read.users.size(); ++user) {
    const std::int64_t first = begin[user];
    const std::int64_t last = begin[user + 1];
    if (last - first < spec.min_events) continue;
    copy_key(read.users, user, kept.users);
    for (std::int64_t i = first; i < last; ++i) {
      const auto event = static_cast<std::size_t>(order[i]);
      kept.events.push_back(copy_key(read.items, events[event].item, kept.items));
      kept.part.push_back(events[event].part);
    }
    kept.splits.push_back(std::ssize(kept.events));
  }
  return kept;
}

void sort_users(Histories& all) {
  const std::vector<std::int32_t> new_id = all.users.sort();
  std::vector<std::int32_t> old_id(new_id.size());
  for (std::size_t i = 0; i < new_id.size(); ++i) old_id[new_id[i]] = static_cast<std::int32_t>(i);
  Histories from = std::move(all);
  all = {.users = std::move(from.users), .items = std::move(from.items)};
  all.left_out = from.left_out;
  all.empty_users = from.empty_users;
  all.empty_items = from.empty_items;
  for (const std::int32_t user : old_id) {
    const std::int64_t begin = from.splits[user];
    const std::int64_t end = from.splits[user + 1];
    all.events.insert(all.events.end(), from.events.begin() + begin, from.events.begin() + end);
    all.part.insert(all.part.end(), from.part.begin() + begin, from.part.begin() + end);
    all.splits.push_back(std::ssize(all.events));
  }
}

void sort_items(Histories& all) {
  const std::vector<std::int32_t> new_id = all.items.sort();
  for (std::int32_t& item : all.events) item = new_id[item];
}

/// Assigns parts to the events that are not from test files.
void set_parts(const HistoriesSplit& split, bool has_test_file, Histories& all) {
  for (std::int64_t user = 0; user < all.num_users(); ++user) {
    const auto begin = static_cast<std::size_t>(all.splits[user]);
    const auto end = static_cast<std::size_t>(all.splits[user + 1]);
    for (std::size_t i = begin; i < end; ++i) {
      Part& part = all.part[i];
      if (part == Part::kTest) continue;
      if (split.last) {
        part = i + 1 == end ? Part::kTest : i + 2 == end ? Part::kValidation : Part::kTraining;
        continue;
      }
      const std::int64_t item = all.items.integer(all.events[i]);
      const std::int64_t key = all.users.integer(static_cast<std::int32_t>(user));
      part = split_part(pair_key(key, item), split.salt);
      if (has_test_file && part == Part::kTest) part = Part::kTraining;
    }
  }
}

Histories read_files(const HistoriesSpec& spec, const HistoriesSplit& split,
                     const DataOptions& options) {
  const std::string& root = options.root;
  Histories read{.users = Vocabulary(spec.users.kind), .items = Vocabulary(spec.items.kind)};
  std::vector<Event> events;
  if (spec.lists) {
    ListReader(Part::kTraining, read, events)
        .read(paths_in(root, spec.files), options.skip_bad.most());
    if (!spec.test_files.empty())
      ListReader(Part::kTest, read, events)
          .read(paths_in(root, spec.test_files), options.skip_bad.most());
  } else {
    read_records(spec, options, read, events);
  }
  Histories all = by_user(read, events, spec);
  if (all.events.empty()) {
    throw ValueError(
        fmt::format("'{}' {}", paths_in(root, spec.files).front(),
                    none_left(spec.where, "events",
                              fmt::format("of users with at least {}", spec.min_events))));
  }
  if (spec.users.sorted) sort_users(all);
  if (spec.items.sorted) sort_items(all);
  set_parts(split, !spec.test_files.empty(), all);
  return all;
}

std::string describe(const KeysSpec& keys) {
  return fmt::format("{:?} {} {}", keys.name, static_cast<int>(keys.kind), keys.sorted);
}

/// Describes everything that the histories depend on.
std::string describe(const HistoriesSpec& spec, const HistoriesSplit& split,
                     const DataOptions& options) {
  std::string text = fmt::format(
      "{}\n{}\n{}\n{} {:?} {:?} {:?} {:?} {} {}\n{} {} {}\n", spec.lists, describe(spec.users),
      describe(spec.items), describe(spec.format), spec.user, spec.item, spec.time, spec.once_per,
      spec.min_events, options.skip_bad.text(), split.last, split.salt, split.train_on_validation);
  text += describe(spec.where);
  return text + file_stamps(paths_in(options.root, spec.files)) + "\n" +
         file_stamps(paths_in(options.root, spec.test_files));
}

}  // namespace

Histories read_histories(const HistoriesSpec& spec, const HistoriesSplit& split,
                         const DataOptions& options) {
  const DataCache cache(options.cache, "histories", describe(spec, split, options));
  return cache.get<Histories>(
      [&] { return read_files(spec, split, options); },
      [](auto& file, Histories& all) {
        file(all.users, all.items, all.splits, all.events, all.part, all.empty_users,
             all.empty_items);
        all.left_out.fields(file);
      },
      [&](const Histories& all) {
        return all.users.kind() == spec.users.kind && all.items.kind() == spec.items.kind &&
               all.part.size() == all.events.size() &&
               std::all_of(all.part.begin(), all.part.end(), is_part) &&
               are_lists(all.splits, all.events, all.users.size(), all.items.size());
      });
}

ItemSets item_sets(const Histories& histories, Part first, Part last) {
  ItemSets sets;
  for (std::size_t user = 0; user + 1 < histories.splits.size(); ++user) {
    const auto begin = std::ssize(sets.items);
    for (auto i = static_cast<std::size_t>(histories.splits[user]);
         i < static_cast<std::size_t>(histories.splits[user + 1]); ++i) {
      if (histories.part[i] >= first && histories.part[i] <= last)
        sets.items.push_back(histories.events[i]);
    }
    std::sort(sets.items.begin() + begin, sets.items.end());
    sets.items.erase(std::unique(sets.items.begin() + begin, sets.items.end()), sets.items.end());
    sets.splits.push_back(std::ssize(sets.items));
  }
  return sets;
}

ItemSets difference(const ItemSets& from, const ItemSets& without) {
  ItemSets sets;
  for (std::int64_t user = 0; user + 1 < std::ssize(from.splits); ++user) {
    const std::span<const std::int32_t> all = from.view()[user], taken = without.view()[user];
    std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(),
                        std::back_inserter(sets.items));
    sets.splits.push_back(std::ssize(sets.items));
  }
  return sets;
}

std::int64_t count_repeated(const Histories& histories, Part part, const ItemSets& sets) {
  std::int64_t repeated = 0;
  for (std::int64_t user = 0; user < histories.num_users(); ++user) {
    const std::span<const std::int32_t> known = sets.view()[user];
    const auto end = static_cast<std::size_t>(histories.splits[static_cast<std::size_t>(user) + 1]);
    for (auto i = static_cast<std::size_t>(histories.splits[user]); i < end; ++i) {
      if (histories.part[i] == part &&
          std::binary_search(known.begin(), known.end(), histories.events[i]))
        ++repeated;
    }
  }
  return repeated;
}

std::map<std::string, std::string> data_digests(const Histories& histories) {
  const auto digest_of = [](auto bytes) { return hash_hex(std::as_bytes(std::span(bytes))); };
  Hasher events;
  events.update(std::as_bytes(std::span(histories.splits)));
  events.update(std::as_bytes(std::span(histories.events)));
  events.update(std::as_bytes(std::span(histories.part)));
  return {{"users", digest_of(histories.users.id_map().to_bytes())},
          {"items", digest_of(histories.items.id_map().to_bytes())},
          {"events", events.hex()}};
}

}  // namespace embertable::jobs
