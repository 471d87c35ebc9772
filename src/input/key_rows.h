#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/enumerators.h"
#include "embertable/id_map.h"
#include "input/key_index.h"

namespace embertable {

template <>
struct Enumerators<KeyKind> : EnumeratorRange<KeyKind::kInteger, KeyKind::kString> {};

}  // namespace embertable

namespace embertable::input {

/// The alternatives follow KeyKind.
using AnyKeyIndex = std::variant<KeyIndex<IntegerKeys>, KeyIndex<StringKeys>>;

/// Throws ValueError for an unknown kind.
inline AnyKeyIndex make_key_index(KeyKind kind) {
  check_enumerator(kind, "id map: kind");
  if (kind == KeyKind::kInteger) return KeyIndex<IntegerKeys>();
  return KeyIndex<StringKeys>();
}
inline KeyKind kind_of(const AnyKeyIndex& keys) {
  return keys.index() == 0 ? KeyKind::kInteger : KeyKind::kString;
}
inline std::int64_t size_of(const AnyKeyIndex& keys) {
  return std::visit([](const auto& index) { return index.size(); }, keys);
}

/// Contents of an id map: the known keys, numbered by their rows.
struct KeyRows {
  static constexpr std::int64_t kMaxSharedRows = std::int64_t{1} << 62;

  AnyKeyIndex keys;
  std::int64_t shared_rows = 0;  ///< rows after those of the keys
};

/// Contents of a builder: keys, numbered as they were first seen.
struct CountedKeys {
  AnyKeyIndex keys;
  std::vector<std::int64_t> counts;  ///< count of each key, at most 2^63 - 1
};

}  // namespace embertable::input
