#include <cstring>

#include "embertable/errors.h"
#include "embertable/id_map.h"
#include "input/key_rows.h"
#include "input/little_endian.h"

namespace embertable {
namespace {

using input::IntegerKeys;
using input::KeyIndex;
using input::KeyRows;
using input::StringKeys;

constexpr std::string_view kMagic = "EMBIDMAP";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKindAt = 12;
constexpr std::size_t kNumKeysAt = 16;
constexpr std::size_t kSharedRowsAt = 24;
constexpr std::size_t kLengthAt = 32;
constexpr std::size_t kKeysAt = 40;
constexpr std::size_t kChecksumBytes = 8;

template <class Unsigned>
void append(Unsigned value, std::string& bytes) {
  char number[sizeof value];
  input::store_little_endian(value, number);
  bytes.append(number, sizeof value);
}

void append_keys(const KeyIndex<IntegerKeys>& keys, std::string& bytes) {
  for (std::int64_t i = 0; i < keys.size(); ++i) append(static_cast<std::uint64_t>(keys[i]), bytes);
}

void append_keys(const KeyIndex<StringKeys>& keys, std::string& bytes) {
  std::uint64_t end = 0;
  for (std::int64_t i = 0; i < keys.size(); ++i) append(end += keys[i].size(), bytes);
  for (std::int64_t i = 0; i < keys.size(); ++i) bytes.append(keys[i]);
}

[[noreturn]] void refuse(const std::string& rule) { throw DataLoss("id map, reading: " + rule); }

void require(bool holds, const std::string& rule) {
  if (!holds) refuse(rule);
}

template <class Unsigned>
Unsigned number_at(std::string_view bytes, std::size_t at) {
  return input::load_little_endian<Unsigned>(bytes.data() + at);
}

template <class Keys>
void add_key(typename Keys::Key key, std::uint64_t row, KeyIndex<Keys>& keys) {
  const std::int64_t number = keys.add(key);
  if (number != static_cast<std::int64_t>(row)) {
    refuse("keys must differ, got the one of row " + std::to_string(number) + " again in row " +
           std::to_string(row));
  }
}

void read_keys(std::string_view bytes, std::uint64_t count, KeyIndex<IntegerKeys>& keys) {
  require(bytes.size() == count * 8, "length of the keys must be 8 bytes each for " +
                                         std::to_string(count) + ", got " +
                                         std::to_string(bytes.size()));
  for (std::uint64_t i = 0; i < count; ++i) {
    add_key(static_cast<std::int64_t>(number_at<std::uint64_t>(bytes, i * 8)), i, keys);
  }
}

void read_keys(std::string_view bytes, std::uint64_t count, KeyIndex<StringKeys>& keys) {
  require(bytes.size() >= count * 8, "length of the keys must be 8 bytes each or more for " +
                                         std::to_string(count) + ", got " +
                                         std::to_string(bytes.size()));
  const std::string_view text = bytes.substr(count * 8);
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto end = number_at<std::uint64_t>(bytes, i * 8);
    if (end < begin || end > text.size()) {
      refuse("ends of the keys must rise to no more than " + std::to_string(text.size()) +
             ", got " + std::to_string(end) + " after " + std::to_string(begin));
    }
    add_key(text.substr(begin, end - begin), i, keys);
    begin = end;
  }
  require(begin == text.size(), "the last key must end at " + std::to_string(text.size()) +
                                    ", got " + std::to_string(begin));
}

}  // namespace

std::string IdMap::to_bytes() const {
  std::string keys;
  std::visit([&](const auto& index) { append_keys(index, keys); }, keys_->keys);
  std::string bytes(kMagic);
  append(kFormatVersion, bytes);
  append(static_cast<std::uint32_t>(kind()), bytes);
  append(static_cast<std::uint64_t>(num_keys()), bytes);
  append(static_cast<std::uint64_t>(keys_->shared_rows), bytes);
  append(static_cast<std::uint64_t>(keys.size()), bytes);
  bytes += keys;
  append(input::hash_of(bytes), bytes);
  return bytes;
}

IdMap IdMap::from_bytes(std::string_view bytes) {
  require(bytes.size() >= kKeysAt + kChecksumBytes,
          "there must be 48 bytes or more, got " + std::to_string(bytes.size()));
  require(bytes.substr(0, kMagic.size()) == kMagic, "the bytes must start with EMBIDMAP");
  const auto version = number_at<std::uint32_t>(bytes, kVersionAt);
  require(version == kFormatVersion, "version must be 1, got " + std::to_string(version));
  const std::size_t end = bytes.size() - kChecksumBytes;
  require(number_at<std::uint64_t>(bytes, end) == input::hash_of(bytes.substr(0, end)),
          "the checksum must be that of the bytes");
  const auto kind = number_at<std::uint32_t>(bytes, kKindAt);
  require(kind == 1 || kind == 2, "kind of keys must be 1 or 2, got " + std::to_string(kind));
  const auto count = number_at<std::uint64_t>(bytes, kNumKeysAt);
  require(count <= static_cast<std::uint64_t>(KeyIndex<StringKeys>::kMaxKeys),
          "number of keys must be below 2^32 - 1, got " + std::to_string(count));
  const auto shared = number_at<std::uint64_t>(bytes, kSharedRowsAt);
  require(shared <= static_cast<std::uint64_t>(KeyRows::kMaxSharedRows),
          "out-of-vocabulary rows must be no more than 2^62, got " + std::to_string(shared));
  const auto length = number_at<std::uint64_t>(bytes, kLengthAt);
  require(length == end - kKeysAt, "length of the keys must be " + std::to_string(end - kKeysAt) +
                                       ", got " + std::to_string(length));
  KeyRows rows{input::make_key_index(static_cast<KeyKind>(kind)),
               static_cast<std::int64_t>(shared)};
  std::visit([&](auto& keys) { read_keys(bytes.substr(kKeysAt, length), count, keys); }, rows.keys);
  return IdMap(std::make_shared<const KeyRows>(std::move(rows)));
}

}  // namespace embertable
