#include "embertable/id_map.h"

#include "embertable/errors.h"
#include "input/id_map_bytes.h"
#include "input/key_rows.h"

namespace embertable {
namespace {

using input::IntegerKeys;
using input::KeyIndex;
using input::KeyRows;
using input::StringKeys;

constexpr std::string_view name_of(KeyKind kind) {
  return kind == KeyKind::kInteger ? "integers" : "strings";
}

std::string text_of(std::int64_t key) { return std::to_string(key); }
std::string text_of(std::string_view key) {
  constexpr std::size_t kMost = 80;
  return "'" + std::string(key.substr(0, kMost)) + (key.size() > kMost ? "...'" : "'");
}

template <class Keys>
const KeyIndex<Keys>& index_of(const KeyRows& rows) {
  const auto* const index = std::get_if<KeyIndex<Keys>>(&rows.keys);
  if (index == nullptr) {
    const KeyKind kind = kind_of(rows.keys);
    const KeyKind other = kind == KeyKind::kInteger ? KeyKind::kString : KeyKind::kInteger;
    throw TypeError("id map: keys are " + std::string(name_of(kind)) + ", got " +
                    std::string(name_of(other)));
  }
  return *index;
}

/// Distributes hashes evenly over the shared rows.
std::int64_t shared_row_of(std::uint64_t hash, std::int64_t shared_rows) {
  const auto wide = static_cast<unsigned __int128>(hash) * static_cast<std::uint64_t>(shared_rows);
  return static_cast<std::int64_t>(wide >> 64);
}

/// Returns the row of a key, or -1 if it has none.
template <class Keys>
std::int64_t row_or_none(const KeyIndex<Keys>& index, std::int64_t shared_rows,
                         typename Keys::Key key) {
  const std::int64_t number = index.find(key);
  if (number >= 0) return number;
  return shared_rows > 0 ? index.size() + shared_row_of(input::hash_of(key), shared_rows) : -1;
}

template <class Key>
[[noreturn]] void refuse_unknown(Key key, const std::string& where) {
  throw KeyError("id map" + where +
                 ": key must be known, as there are no out-of-vocabulary rows; got " +
                 text_of(key));
}

template <class Keys>
std::int64_t row_of(const KeyRows& rows, typename Keys::Key key) {
  const std::int64_t row = row_or_none(index_of<Keys>(rows), rows.shared_rows, key);
  if (row < 0) refuse_unknown(key, "");
  return row;
}

template <class Keys>
void rows_of(const KeyRows& rows, std::span<const typename Keys::Key> keys,
             std::span<std::int64_t> out) {
  const KeyIndex<Keys>& index = index_of<Keys>(rows);
  if (out.size() != keys.size()) {
    throw ValueError("id map: out must be as long as keys, " + std::to_string(keys.size()) +
                     ", got " + std::to_string(out.size()));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out[i] = row_or_none(index, rows.shared_rows, keys[i]);
    if (out[i] < 0) refuse_unknown(keys[i], ", position " + std::to_string(i));
  }
}

template <class Keys>
std::optional<std::int64_t> find_key(const KeyRows& rows, typename Keys::Key key) {
  const std::int64_t number = index_of<Keys>(rows).find(key);
  if (number < 0) return std::nullopt;
  return number;
}

template <class Keys>
typename Keys::Key key_of(const KeyRows& rows, std::int64_t row) {
  const KeyIndex<Keys>& index = index_of<Keys>(rows);
  if (row < 0 || row >= index.size()) {
    throw IndexError("id map: row with a key of its own must be below " +
                     std::to_string(index.size()) + " and not below 0, got " + std::to_string(row));
  }
  return index[row];
}

template <class Keys>
bool same_keys(const KeyIndex<Keys>& a, const KeyIndex<Keys>& b) {
  if (a.size() != b.size()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

IdMap IdMap::hashed(KeyKind kind, std::int64_t num_rows) {
  if (num_rows < 1 || num_rows > KeyRows::kMaxSharedRows) {
    throw ValueError("id map: num_rows must be 1..2^62, got " + std::to_string(num_rows));
  }
  return IdMap(std::make_shared<const KeyRows>(KeyRows{input::make_key_index(kind), num_rows}));
}

KeyKind IdMap::kind() const noexcept { return kind_of(keys_->keys); }
std::int64_t IdMap::num_keys() const noexcept { return size_of(keys_->keys); }
std::int64_t IdMap::out_of_vocabulary_rows() const noexcept { return keys_->shared_rows; }
std::int64_t IdMap::num_rows() const noexcept { return num_keys() + keys_->shared_rows; }

std::int64_t IdMap::row(std::int64_t key) const { return row_of<IntegerKeys>(*keys_, key); }
std::int64_t IdMap::row(std::string_view key) const { return row_of<StringKeys>(*keys_, key); }

void IdMap::rows(std::span<const std::int64_t> keys, std::span<std::int64_t> out) const {
  rows_of<IntegerKeys>(*keys_, keys, out);
}
void IdMap::rows(std::span<const std::string_view> keys, std::span<std::int64_t> out) const {
  rows_of<StringKeys>(*keys_, keys, out);
}

std::optional<std::int64_t> IdMap::find(std::int64_t key) const {
  return find_key<IntegerKeys>(*keys_, key);
}
std::optional<std::int64_t> IdMap::find(std::string_view key) const {
  return find_key<StringKeys>(*keys_, key);
}

std::int64_t IdMap::integer_key(std::int64_t row) const { return key_of<IntegerKeys>(*keys_, row); }
std::string_view IdMap::string_key(std::int64_t row) const {
  return key_of<StringKeys>(*keys_, row);
}

std::string IdMap::to_bytes() const { return input::to_bytes(*keys_); }
IdMap IdMap::from_bytes(std::string_view bytes) {
  return IdMap(std::make_shared<const KeyRows>(input::key_rows_of(bytes)));
}

bool operator==(const IdMap& a, const IdMap& b) noexcept {
  if (a.keys_ == b.keys_) return true;
  if (a.kind() != b.kind() || a.keys_->shared_rows != b.keys_->shared_rows) return false;
  return std::visit(
      [&](const auto& keys) {
        return same_keys(keys, *std::get_if<std::decay_t<decltype(keys)>>(&b.keys_->keys));
      },
      a.keys_->keys);
}

}  // namespace embertable
