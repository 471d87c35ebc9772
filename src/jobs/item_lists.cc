#include "jobs/item_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "base/hash.h"
#include "embertable/errors.h"
#include "jobs/token_reader.h"

namespace embertable::jobs {
namespace {

/// Lists as the file has them, and which of them an item's is.
struct ReadLists {
  explicit ReadLists(std::int32_t items) : list_of(static_cast<std::size_t>(items), -1) {}

  /// False if the item has one already.
  bool begin(std::int32_t item) {
    std::int64_t& list = list_of[static_cast<std::size_t>(item)];
    if (list >= 0) return false;
    list = std::ssize(starts);
    starts.push_back(std::ssize(ids));
    return true;
  }

  void add(std::int32_t id) {
    const auto own = ids.begin() + starts.back();
    if (std::find(own, ids.end(), id) == ids.end()) ids.push_back(id);
  }

  std::vector<std::int64_t> list_of;  ///< by item, -1: none
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> ids;
};

constexpr const char* kOnce = "an item that stands in no other line";

void read_lines(const std::string& path, const Vocabulary& items, Vocabulary& keys,
                ReadLists& read) {
  TokenReader reader(path);
  bool wanted = false;
  while (reader.next()) {
    const bool integers = (reader.begins_line() ? items : keys).kind() == KeyKind::kInteger;
    if (!reader.begins_line()) {
      if (wanted) read.add(integers ? keys.add(reader.integer()) : keys.add(reader.text()));
      continue;
    }
    const std::int32_t item = integers ? items.find(reader.integer()) : items.find(reader.text());
    wanted = item >= 0;
    if (wanted && !read.begin(item)) reader.refuse(kOnce);
  }
}

void read_records(const ItemListsSpec& spec, const std::string& path, const Vocabulary& items,
                  Vocabulary& keys, ReadLists& read) {
  const std::string columns[] = {spec.key, spec.column};
  CsvReader reader(path, spec.format, columns);
  const auto add = [&](std::string_view text) {
    if (text.empty()) return;
    if (keys.kind() == KeyKind::kString) return read.add(keys.add(text));
    std::int64_t key = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), key);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
      reader.refuse(1, fmt::format("integers with '{}' between them", spec.separator));
    read.add(keys.add(key));
  };
  while (reader.next()) {
    const std::int32_t item = items.kind() == KeyKind::kInteger ? items.find(reader.integer(0))
                                                                : items.find(reader.text(0));
    if (item < 0) continue;
    if (!read.begin(item)) reader.refuse(0, kOnce);
    for_each_part(reader.text(1), spec.separator, add);
  }
}

}  // namespace

ItemLists read_item_lists(const ItemListsSpec& spec, const Vocabulary& items,
                          const std::string& root) {
  const std::string path = (std::filesystem::path(root) / spec.file).string();
  ItemLists lists{.keys = Vocabulary(spec.keys.kind)};
  ReadLists read(items.size());
  if (spec.lists)
    read_lines(path, items, lists.keys, read);
  else
    read_records(spec, path, items, lists.keys, read);
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
    for (std::int32_t& id : lists.ids) id = new_id[static_cast<std::size_t>(id)];
  }
  return lists;
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
