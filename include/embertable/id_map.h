#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "embertable/version.h"

namespace embertable {

namespace input {
struct CountedKeys;
struct KeyRows;
}  // namespace input

/// Key type of an id map. Enumerator values are stored in files; never change them.
enum class KeyKind : std::uint8_t { kInteger = 1, kString = 2 };

/// Order in which known keys get rows 0, 1, ...: those seen first come first, or those seen most
/// often (the earlier of two that are equal in this).
enum class RowOrder : std::uint8_t { kFirstSeen, kMostFrequent };

/// Decides which counted keys get a row of their own, and what becomes of the others.
struct IdMapOptions {
  /// Keys seen fewer times have no row of their own. >= 1.
  std::int64_t min_count = 1;

  /// Maximum number of keys, among those that reach min_count, with a row of their own: the most
  /// frequent ones get it (the earlier of two that are equally frequent). 0: no maximum.
  /// Independent of `row_order`.
  std::int64_t max_keys = 0;

  /// Number of rows behind those of the known keys that all other keys share, by hash. 0: other
  /// keys are an error.
  std::int64_t out_of_vocabulary_rows = 0;

  RowOrder row_order = RowOrder::kFirstSeen;
};

/// Maps keys, strings or 64-bit integers, to rows of a table. An immutable value; copies share
/// memory; any number of threads may look up. Known keys have the rows 0 .. num_keys() - 1; the
/// others share the rows from there to num_rows() - 1 by a hash that never changes.
class EMBERTABLE_API IdMap {
 public:
  /// Makes a map without known keys: all keys share `num_rows` rows by hash. Throws ValueError
  /// unless 1 <= num_rows <= 2^62, and for an unknown kind.
  static IdMap hashed(KeyKind kind, std::int64_t num_rows);

  KeyKind kind() const noexcept;

  /// Returns the number of known keys, each of which has a row of its own.
  std::int64_t num_keys() const noexcept;

  /// Returns the number of rows that all other keys share.
  std::int64_t out_of_vocabulary_rows() const noexcept;

  /// Returns the vocabulary_size of the table: num_keys() + out_of_vocabulary_rows().
  std::int64_t num_rows() const noexcept;

  /// Returns the row of a key. Throws TypeError for the wrong kind of key, KeyError naming an
  /// unknown key if no rows are shared.
  std::int64_t row(std::int64_t key) const;
  std::int64_t row(std::string_view key) const;

  /// Sets out[i] = row(keys[i]). Throws what `row` throws, naming the position too, and ValueError
  /// unless out is as long as keys; out is unspecified then.
  void rows(std::span<const std::int64_t> keys, std::span<std::int64_t> out) const;
  void rows(std::span<const std::string_view> keys, std::span<std::int64_t> out) const;

  /// Returns the row of a known key, else nothing. Throws TypeError for the wrong kind of key.
  std::optional<std::int64_t> find(std::int64_t key) const;
  std::optional<std::int64_t> find(std::string_view key) const;

  /// Returns the key of a row that is not shared. Throws IndexError unless 0 <= row < num_keys(),
  /// TypeError if keys are of the other kind. The view lives as long as a copy of this map does.
  std::int64_t integer_key(std::int64_t row) const;
  std::string_view string_key(std::int64_t row) const;

  /// Serializes the map; equal maps give the same bytes. Little-endian, version 1:
  ///
  ///     offset  bytes
  ///          0      8  "EMBIDMAP"
  ///          8      4  version, 1
  ///         12      4  kind of keys: 1 integers, 2 strings
  ///         16      8  number of keys, n
  ///         24      8  out-of-vocabulary rows, m
  ///         32      8  length of the keys, k
  ///         40      k  integers: int64 [n] by row. Strings: the end of each, uint64 [n], then
  ///         their bytes
  ///     40 + k      8  XXH3-64 (seed 0) of all before
  ///
  /// An unknown key's row is n + ((h * m) >> 64), h being the XXH3-64 (seed 0) of the string, or of
  /// the 8 bytes of the integer.
  std::string to_bytes() const;

  /// Reverses to_bytes. Throws DataLoss naming the rule that the bytes break.
  static IdMap from_bytes(std::string_view bytes);

  /// True if the same keys have the same rows, and as many rows are shared.
  friend EMBERTABLE_API bool operator==(const IdMap& a, const IdMap& b) noexcept;

 private:
  friend class IdMapBuilder;
  explicit IdMap(std::shared_ptr<const input::KeyRows> keys) : keys_(std::move(keys)) {}
  std::shared_ptr<const input::KeyRows> keys_;
};

/// Counts keys and makes an id map of them. Use one from one thread at a time.
class EMBERTABLE_API IdMapBuilder {
 public:
  /// Throws ValueError for an unknown kind.
  explicit IdMapBuilder(KeyKind kind);
  IdMapBuilder(IdMapBuilder&&) noexcept;
  IdMapBuilder& operator=(IdMapBuilder&&) noexcept;
  ~IdMapBuilder();

  /// Note that a key was seen `count` times, or each of several keys once. They throw TypeError for
  /// the wrong kind of key, ValueError unless count >= 1 or beyond 2^32 - 2 different keys.
  void add(std::int64_t key, std::int64_t count = 1);
  void add(std::string_view key, std::int64_t count = 1);
  void add(std::span<const std::int64_t> keys);
  void add(std::span<const std::string_view> keys);

  /// Returns the number of different keys seen so far.
  std::int64_t num_keys() const noexcept;

  /// Makes the map; the builder may go on counting. Throws ValueError naming the option and its
  /// rule.
  IdMap build(const IdMapOptions& options = {}) const;

 private:
  std::unique_ptr<input::CountedKeys> counted_;
};

}  // namespace embertable
