#include "apps/jobs/data/item_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/keys/key_list.h"
#include "apps/jobs/spec/file_spec.h"
#include "apps/jobs/text/token_reader.h"
#include "base/hash.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Lists of a file, and which of them belongs to which item.
struct ReadLists {
  explicit ReadLists(std::int32_t items) : list_of(static_cast<std::size_t>(items), -1) {}

  bool has(std::int32_t item) const { return list_of[item] >= 0; }

  /// Adds an item's list, each attribute once.
  void add(std::int32_t item, const KeyList& list, Vocabulary& keys) {
    list_of[item] = std::ssize(starts);
    starts.push_back(std::ssize(ids));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int32_t id = list.number(i, keys);
      const auto own = ids.begin() + starts.back();
      if (std::find(own, ids.end(), id) == ids.end()) ids.push_back(id);
    }
  }

  std::vector<std::int64_t> list_of;  ///< by item, -1: none
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> ids;
};

constexpr const char* kOnce = "an item that stands in no other line";

/// Reads lines `item attribute ...`, each of which counts once it is known to be whole.
class LineReader {
 public:
  LineReader(const Vocabulary& items, Vocabulary& keys, ReadLists& read)
      : items_(items), keys_(keys), read_(read), line_(keys.kind()) {}

  /// Returns which lines were left out.
  LeftOut read(const std::string& path, std::int64_t skip_bad) {
    TokenReader reader(std::span(&path, 1), skip_bad);
    for (bool more = true; more;) {
      try {
        more = reader.next();
        if (more) take(reader);
      } catch (const BrokenRecord&) {
        if (reader.begins_line()) end_line();
        reader.leave_out();
        reader.skip_line();
        item_ = -1;
      }
    }
    end_line();
    return reader.left_out();
  }

 private:
  void take(const TokenReader& reader) {
    if (!reader.begins_line()) {
      if (item_ >= 0) line_.add(reader);
      return;
    }
    end_line();
    const std::int32_t item = items_.kind() == KeyKind::kInteger ? items_.find(reader.integer())
                                                                 : items_.find(reader.text());
    if (item >= 0 && read_.has(item)) reader.refuse(kOnce);
    item_ = item;
  }

  void end_line() {
    if (item_ >= 0) read_.add(item_, line_, keys_);
    line_.clear();
    item_ = -1;
  }

  const Vocabulary& items_;
  Vocabulary& keys_;
  ReadLists& read_;
  std::int32_t item_ = -1;  ///< item of the current line; -1: an item that is not wanted
  KeyList line_;            ///< its attributes
};

/// Returns which records were left out.
LeftOut read_records(const ItemListsSpec& spec, const std::string& path, std::int64_t skip_bad,
                     const Vocabulary& items, Vocabulary& keys, ReadLists& read) {
  const std::string columns[] = {spec.key, spec.column};
  CsvReader reader(std::span(&path, 1), spec.format, columns, skip_bad);
  KeyList list(keys.kind());
  const auto add = [&](std::string_view text) {
    if (text.empty()) return;
    if (keys.kind() == KeyKind::kString) return list.add(text);
    std::int64_t key = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), key);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
      reader.refuse(1, fmt::format("integers with '{}' between them", spec.separator));
    list.add(key);
  };
  while (reader.next()) {
    try {
      const std::int32_t item = items.kind() == KeyKind::kInteger ? items.find(reader.integer(0))
                                                                  : items.find(reader.text(0));
      if (item < 0) continue;
      if (read.has(item)) reader.refuse(0, kOnce);
      list.clear();
      for_each_part(reader.text(1), spec.separator, add);
      read.add(item, list, keys);
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  return reader.left_out();
}

ItemLists read_file(const ItemListsSpec& spec, const Vocabulary& items,
                    const DataOptions& options) {
  const std::string path = paths_in(options.root, {spec.file})[0];
  ItemLists lists{.keys = Vocabulary(spec.keys.kind)};
  ReadLists read(items.size());
  lists.left_out = spec.lists
                       ? LineReader(items, lists.keys, read).read(path, options.skip_bad.most())
                       : read_records(spec, path, options.skip_bad.most(), items, lists.keys, read);
  read.starts.push_back(std::ssize(read.ids));
  for (const std::int64_t list : read.list_of) {
    if (list < 0) {
      ++lists.without;
    } else {
      const auto l = static_cast<std::size_t>(list);
      lists.ids.insert(lists.ids.end(), read.ids.begin() + read.starts[l],
                       read.ids.begin() + read.starts[l + 1]);
    }
    lists.splits.push_back(std::ssize(lists.ids));
  }
  if (spec.keys.sorted) {
    const std::vector<std::int32_t> new_id = lists.keys.sort();
    for (std::int32_t& id : lists.ids) id = new_id[id];
  }
  return lists;
}

/// Describes everything that the lists depend on.
std::string describe(const ItemListsSpec& spec, const Vocabulary& items,
                     const DataOptions& options) {
  const std::string keys = items.id_map().to_bytes();
  return fmt::format("{:?} {} {} {}\n{} {:?} {:?} {:?} {} {}\n{}", spec.keys.name,
                     static_cast<int>(spec.keys.kind), spec.keys.sorted, spec.lists,
                     describe(spec.format), spec.key, spec.column, spec.separator,
                     options.skip_bad.text(), hash_hex(std::as_bytes(std::span(keys))),
                     file_stamps(paths_in(options.root, {spec.file})));
}

}  // namespace

ItemLists read_item_lists(const ItemListsSpec& spec, const Vocabulary& items,
                          const DataOptions& options) {
  const DataCache cache(options.cache, "items." + spec.keys.name,
                        options.cache.empty() ? "" : describe(spec, items, options));
  return cache.get<ItemLists>([&] { return read_file(spec, items, options); },
                              [](auto& file, ItemLists& lists) {
                                file(lists.keys, lists.splits, lists.ids, lists.without);
                                lists.left_out.fields(file);
                              },
                              [&](const ItemLists& lists) {
                                return lists.keys.kind() == spec.keys.kind &&
                                       are_lists(lists.splits, lists.ids, items.size(),
                                                 lists.keys.size());
                              });
}

std::string data_digest(const ItemLists& lists) {
  Hasher hasher;
  const std::string keys = lists.keys.id_map().to_bytes();
  hasher.update(std::as_bytes(std::span(keys)));
  hasher.update(std::as_bytes(std::span(lists.splits)));
  hasher.update(std::as_bytes(std::span(lists.ids)));
  return hasher.hex();
}

}  // namespace embertable::jobs
