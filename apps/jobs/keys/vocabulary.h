#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/keys/key_table.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

/// Numbers the keys of a column 0, 1, ... in the order in which they are first seen. Keys without a
/// number may share rows after them.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(KeyKind kind, std::int64_t shared_rows = 0)
      : kind_(kind), shared_rows_(shared_rows) {}

  /// Has the same rows as the map.
  explicit Vocabulary(const IdMap& map);

  KeyKind kind() const noexcept { return kind_; }
  std::int32_t size() const noexcept { return keys_.size(); }
  std::int64_t shared_rows() const noexcept { return shared_rows_; }

  /// Returns the number of rows of a table with these keys.
  std::int64_t num_rows() const noexcept { return size() + shared_rows_; }

  /// Returns the number of a key; a new key gets one now. Throws ValueError beyond 2^31 - 1 keys.
  std::int32_t add(std::int64_t key) { return add_bytes(bytes_of(key)); }
  std::int32_t add(std::string_view key) { return add_bytes(key); }

  /// Does the same for a text, or for an integer given by its 8 bytes.
  std::int32_t add_bytes(std::string_view key) { return keys_.add(key, KeyTable::hash(key), 0); }

  /// Returns -1 for an unknown key.
  std::int32_t find(std::int64_t key) const noexcept { return find(bytes_of(key)); }
  std::int32_t find(std::string_view key) const noexcept {
    return keys_.find(key, KeyTable::hash(key));
  }

  /// Returns the key of a number. Requires: the function fits the vocabulary's kind.
  std::int64_t integer(std::int32_t id) const noexcept;
  std::string_view text(std::int32_t id) const noexcept { return keys_[id]; }
  std::string shown(std::int32_t id) const;  ///< either kind

  /// The keys as bytes (8 for an integer), with their counts.
  KeyTable& keys() noexcept { return keys_; }
  const KeyTable& keys() const noexcept { return keys_; }

  /// Returns the row of a key, as bytes, that has no number. Requires: shared_rows() >= 1.
  std::int64_t shared_row(std::string_view key) const noexcept;

  /// Returns an id map in which the numbers are the rows.
  IdMap id_map() const;

  /// Keeps the keys that were seen at least `min_count` times, in their order. Returns the new
  /// number of each old one, or -1.
  std::vector<std::int32_t> keep(std::int64_t min_count);

  /// Renumbers the keys in rising order (texts by their bytes). Returns the new number of each old
  /// one.
  std::vector<std::int32_t> sort();

 private:
  static std::string_view bytes_of(const std::int64_t& key) noexcept {
    return {reinterpret_cast<const char*>(&key), sizeof(key)};
  }
  std::vector<std::int32_t> renumber(const std::vector<std::int32_t>& old_ids);

  KeyKind kind_ = KeyKind::kInteger;
  std::int64_t shared_rows_ = 0;
  KeyTable keys_;
};

}  // namespace embertable::jobs
