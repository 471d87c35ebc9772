#include <algorithm>
#include <limits>

#include "base/enumerators.h"
#include "embertable/errors.h"
#include "embertable/id_map.h"
#include "input/key_rows.h"

namespace embertable {

template <>
struct Enumerators<RowOrder> : EnumeratorRange<RowOrder::kFirstSeen, RowOrder::kMostFrequent> {};

namespace {

using input::CountedKeys;
using input::IntegerKeys;
using input::KeyIndex;
using input::KeyRows;
using input::StringKeys;

template <class Keys>
KeyIndex<Keys>& index_of(CountedKeys& counted) {
  auto* const index = std::get_if<KeyIndex<Keys>>(&counted.keys);
  if (index == nullptr) {
    throw TypeError(kind_of(counted.keys) == KeyKind::kInteger
                        ? "id map builder: keys are integers, got strings"
                        : "id map builder: keys are strings, got integers");
  }
  return *index;
}

template <class Keys>
void count_key(CountedKeys& counted, typename Keys::Key key, std::int64_t count) {
  KeyIndex<Keys>& index = index_of<Keys>(counted);
  if (count < 1) {
    throw ValueError("id map builder: count must be 1 or more, got " + std::to_string(count));
  }
  if (index.size() == KeyIndex<Keys>::kMaxKeys && index.find(key) < 0) {
    throw ValueError("id map builder: there must be no more than 2^32 - 2 different keys");
  }
  counted.counts.resize(static_cast<std::size_t>(index.size()) + 1);
  std::int64_t& seen = counted.counts[index.add(key)];
  const std::int64_t room = std::numeric_limits<std::int64_t>::max() - seen;
  seen += std::min(count, room);
}

void check_option(std::string_view name, std::int64_t value, std::int64_t least,
                  std::int64_t most) {
  if (value >= least && value <= most) return;
  throw ValueError("id map: " + std::string(name) + " must be " + std::to_string(least) + ".." +
                   std::to_string(most) + ", got " + std::to_string(value));
}

/// Returns the numbers of the keys that get rows, by row.
std::vector<std::uint32_t> choose_keys(const CountedKeys& counted, const IdMapOptions& options) {
  std::vector<std::uint32_t> chosen;
  for (std::int64_t i = 0; i < size_of(counted.keys); ++i) {
    if (counted.counts[i] >= options.min_count) {
      chosen.push_back(static_cast<std::uint32_t>(i));
    }
  }
  const auto more_frequent = [&](std::uint32_t a, std::uint32_t b) {
    return counted.counts[a] != counted.counts[b] ? counted.counts[a] > counted.counts[b] : a < b;
  };
  const auto most = static_cast<std::size_t>(options.max_keys);
  if (most > 0 && chosen.size() > most) {
    std::nth_element(chosen.begin(), chosen.begin() + options.max_keys, chosen.end(),
                     more_frequent);
    chosen.resize(most);
    std::sort(chosen.begin(), chosen.end());
  }
  if (options.row_order == RowOrder::kMostFrequent) {
    std::sort(chosen.begin(), chosen.end(), more_frequent);
  }
  return chosen;
}

}  // namespace

IdMapBuilder::IdMapBuilder(KeyKind kind)
    : counted_(std::make_unique<CountedKeys>(CountedKeys{input::make_key_index(kind), {}})) {}
IdMapBuilder::IdMapBuilder(IdMapBuilder&&) noexcept = default;
IdMapBuilder& IdMapBuilder::operator=(IdMapBuilder&&) noexcept = default;
IdMapBuilder::~IdMapBuilder() = default;

void IdMapBuilder::add(std::int64_t key, std::int64_t count) {
  count_key<IntegerKeys>(*counted_, key, count);
}
void IdMapBuilder::add(std::string_view key, std::int64_t count) {
  count_key<StringKeys>(*counted_, key, count);
}
void IdMapBuilder::add(std::span<const std::int64_t> keys) {
  for (const std::int64_t key : keys) add(key);
}
void IdMapBuilder::add(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) add(key);
}

std::int64_t IdMapBuilder::num_keys() const noexcept { return size_of(counted_->keys); }

IdMap IdMapBuilder::build(const IdMapOptions& options) const {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  check_option("min_count", options.min_count, 1, kMost);
  check_option("max_keys", options.max_keys, 0, kMost);
  check_option("out_of_vocabulary_rows", options.out_of_vocabulary_rows, 0,
               KeyRows::kMaxSharedRows);
  check_enumerator(options.row_order, "id map: row_order");
  KeyRows rows{input::make_key_index(kind_of(counted_->keys)), options.out_of_vocabulary_rows};
  std::visit(
      [&](const auto& seen) {
        auto& known = std::get<std::decay_t<decltype(seen)>>(rows.keys);
        for (const std::uint32_t number : choose_keys(*counted_, options)) known.add(seen[number]);
      },
      counted_->keys);
  return IdMap(std::make_shared<const KeyRows>(std::move(rows)));
}

}  // namespace embertable
