#include "apps/jobs/keys/key_table.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "embertable/errors.h"
#include "input/key_index.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kFirstGroups = 8;
constexpr int kOffsetBits = 56;
constexpr std::uint64_t kLong = 0xff;  // marks a long key, whose size is in bytes_

}  // namespace

std::uint64_t KeyTable::hash_of_long(std::string_view key) noexcept {
  return input::place_hash_of(key);
}

std::string_view KeyTable::long_key(KeyHead key) const noexcept {
  const char* const p = bytes_.data() + (key.high & ((std::uint64_t{1} << kOffsetBits) - 1));
  std::uint64_t size = 0;
  std::memcpy(&size, p, sizeof(size));
  return {p + sizeof(size), size};
}

std::string_view KeyTable::operator[](std::int32_t number) const noexcept {
  const KeyHead& key = keys_[number];
  const std::uint64_t size = key.high >> kOffsetBits;
  if (size == kLong) return long_key(key);
  return {reinterpret_cast<const char*>(&key), size};
}

/// Returns the number of the equal key of this hash, or -1.
template <class Same>
std::int32_t KeyTable::search(std::uint64_t hash, Same same) const noexcept {
  if (num_groups_ == 0) return -1;
  const std::uint32_t tag = tag_of(hash);
  for (std::size_t place = tag & mask_;; place = (place + 1) & mask_) {
    const Group& group = groups()[place];
    for (unsigned found = group.with(tag); found != 0; found &= found - 1) {
      const std::uint32_t number = group.numbers[std::countr_zero(found)];
      if (same(keys_[number])) return static_cast<std::int32_t>(number);
    }
    if (!group.is_full()) return -1;
  }
}

std::int32_t KeyTable::find_short(KeyHead key, std::uint64_t hash) const noexcept {
  return search(hash, [key](const KeyHead& other) { return other == key; });
}

std::int32_t KeyTable::find_long(std::string_view key, std::uint64_t hash) const noexcept {
  return search(hash, [&](const KeyHead& other) {
    return other.low == hash && other.high >> kOffsetBits == kLong && long_key(other) == key;
  });
}

std::int32_t KeyTable::add_short(KeyHead key, std::uint64_t hash, std::uint32_t times) {
  const std::int32_t number = find_short(key, hash);
  if (number < 0) return append(key, hash, times);
  see(number, times);
  return number;
}

std::int32_t KeyTable::add_long(std::string_view key, std::uint64_t hash, std::uint32_t times) {
  const std::int32_t number = find_long(key, hash);
  if (number >= 0) {
    see(number, times);
    return number;
  }
  const std::uint64_t begin = bytes_.size();
  const std::uint64_t size = key.size();
  bytes_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes_.append(key);
  return append({hash, kLong << kOffsetBits | begin}, hash, times);
}

std::int32_t KeyTable::append(KeyHead key, std::uint64_t hash, std::uint32_t times) {
  if (size() == kMaxKeys)
    throw ValueError("a vocabulary must have fewer than 2^31 keys, got one more");
  if (keys_.size() * 8 >= num_groups_ * kGroup * 5) grow();
  keys_.push_back(key);
  try {
    seen_.push_back(times);
  } catch (...) {  // without memory, size() and seen() must still agree
    keys_.pop_back();
    throw;
  }
  enter(tag_of(hash), static_cast<std::uint32_t>(size() - 1));
  return size() - 1;
}

/// Enters a number into the first group with room, starting from its own.
void KeyTable::enter(std::uint32_t tag, std::uint32_t number) noexcept {
  std::size_t place = tag & mask_;
  while (groups()[place].is_full()) place = (place + 1) & mask_;
  Group& group = groups()[place];
  const int free = std::countr_zero(group.with(0));
  group.tags[free] = tag;
  group.numbers[free] = number;
}

void KeyTable::grow() {
  const std::size_t count = std::max(kFirstGroups, num_groups_ * 2);
  const Mapping old =
      std::exchange(memory_, Mapping(static_cast<std::int64_t>(count * sizeof(Group))));
  const std::size_t old_count = std::exchange(num_groups_, count);
  mask_ = count - 1;
  const Group* const old_groups = reinterpret_cast<const Group*>(old.data());
  for (const Group& group : std::span(old_groups, old_count)) {
    for (unsigned i = 0; i < kGroup && group.tags[i] != 0; ++i)
      enter(group.tags[i], group.numbers[i]);
  }
}

}  // namespace embertable::jobs
