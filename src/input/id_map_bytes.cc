#include "input/id_map_bytes.h"

#include "base/bytes.h"
#include "embertable/errors.h"

namespace embertable::input {
namespace {

constexpr std::string_view kMagic = "EMBIDMAP";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kFrontBytes = 40;  ///< magic, version, kind and three numbers
constexpr std::size_t kChecksumBytes = 8;

void append_keys(const KeyIndex<IntegerKeys>& keys, std::string& bytes) {
  for (std::int64_t i = 0; i < keys.size(); ++i)
    append_little_endian(static_cast<std::uint64_t>(keys[i]), bytes);
}

void append_keys(const KeyIndex<StringKeys>& keys, std::string& bytes) {
  std::uint64_t end = 0;
  for (std::int64_t i = 0; i < keys.size(); ++i) append_little_endian(end += keys[i].size(), bytes);
  for (std::int64_t i = 0; i < keys.size(); ++i) bytes.append(keys[i]);
}

[[noreturn]] void refuse(const std::string& rule) { throw DataLoss("id map, reading: " + rule); }

void require(bool holds, const std::string& rule) {
  if (!holds) refuse(rule);
}

template <class Keys>
void add_key(typename Keys::Key key, std::uint64_t row, KeyIndex<Keys>& keys) {
  const std::int64_t number = keys.add(key);
  if (number != static_cast<std::int64_t>(row)) {
    refuse("keys must differ, got the one of row " + std::to_string(number) + " again in row " +
           std::to_string(row));
  }
}

void read_keys(ByteCursor<const char> bytes, std::uint64_t count, KeyIndex<IntegerKeys>& keys) {
  require(bytes.left() == count * 8, "length of the keys must be 8 bytes each for " +
                                         std::to_string(count) + ", got " +
                                         std::to_string(bytes.left()));
  for (std::uint64_t i = 0; i < count; ++i)
    add_key(static_cast<std::int64_t>(bytes.number<std::uint64_t>()), i, keys);
}

void read_keys(ByteCursor<const char> bytes, std::uint64_t count, KeyIndex<StringKeys>& keys) {
  require(bytes.holds(count * 8), "length of the keys must be 8 bytes each or more for " +
                                      std::to_string(count) + ", got " +
                                      std::to_string(bytes.left()));
  ByteCursor<const char> ends(bytes.text(count * 8));
  const std::uint64_t text_bytes = bytes.left();
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto end = ends.number<std::uint64_t>();
    if (end < begin || end > text_bytes) {
      refuse("ends of the keys must rise to no more than " + std::to_string(text_bytes) + ", got " +
             std::to_string(end) + " after " + std::to_string(begin));
    }
    add_key(bytes.text(end - begin), i, keys);
    begin = end;
  }
  require(bytes.at_end(), "the last key must end at " + std::to_string(text_bytes) + ", got " +
                              std::to_string(begin));
}

}  // namespace

std::string to_bytes(const KeyRows& rows) {
  std::string keys;
  std::visit([&](const auto& index) { append_keys(index, keys); }, rows.keys);
  std::string bytes(kMagic);
  append_little_endian(kFormatVersion, bytes);
  append_little_endian(static_cast<std::uint32_t>(kind_of(rows.keys)), bytes);
  append_little_endian(static_cast<std::uint64_t>(size_of(rows.keys)), bytes);
  append_little_endian(static_cast<std::uint64_t>(rows.shared_rows), bytes);
  append_little_endian(static_cast<std::uint64_t>(keys.size()), bytes);
  bytes += keys;
  append_little_endian(hash_of(bytes), bytes);
  return bytes;
}

KeyRows key_rows_of(std::string_view bytes) {
  require(bytes.size() >= kFrontBytes + kChecksumBytes,
          "there must be 48 bytes or more, got " + std::to_string(bytes.size()));
  const std::string_view summed = bytes.substr(0, bytes.size() - kChecksumBytes);
  ByteCursor<const char> rest(summed);
  require(rest.text(kMagic.size()) == kMagic, "the bytes must start with EMBIDMAP");
  const auto version = rest.number<std::uint32_t>();
  require(version == kFormatVersion, "version must be 1, got " + std::to_string(version));
  require(load_little_endian<std::uint64_t>(bytes.data() + summed.size()) == hash_of(summed),
          "the checksum must be that of the bytes");
  const auto kind = rest.number<std::uint32_t>();
  require(kind == 1 || kind == 2, "kind of keys must be 1 or 2, got " + std::to_string(kind));
  const auto count = rest.number<std::uint64_t>();
  require(count <= static_cast<std::uint64_t>(KeyIndex<StringKeys>::kMaxKeys),
          "number of keys must be below 2^32 - 1, got " + std::to_string(count));
  const auto shared = rest.number<std::uint64_t>();
  require(shared <= static_cast<std::uint64_t>(KeyRows::kMaxSharedRows),
          "out-of-vocabulary rows must be no more than 2^62, got " + std::to_string(shared));
  const auto length = rest.number<std::uint64_t>();
  require(length == rest.left(), "length of the keys must be " + std::to_string(rest.left()) +
                                     ", got " + std::to_string(length));
  KeyRows rows{make_key_index(static_cast<KeyKind>(kind)), static_cast<std::int64_t>(shared)};
  std::visit([&](auto& keys) { read_keys(rest, count, keys); }, rows.keys);
  return rows;
}

}  // namespace embertable::input
