#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "embertable/export.h"

namespace embertable {

namespace input {
struct CountedKeys;
struct KeyRows;
}  // namespace input

/// What the keys of an id map are. Numbers stand in files.
enum class KeyKind : std::uint8_t { kInteger = 1, kString = 2 };

/// Which of the known keys has row 0, 1, ...: those seen first, or those seen most often (the
/// earlier of two that are equal in this).
enum class RowOrder : std::uint8_t { kFirstSeen, kMostFrequent };

/// Which counted keys get a row of their own, and what becomes of the others.
struct IdMapOptions {
  /// Keys seen less often have no row of their own. >= 1.
  std::int64_t min_count = 1;

  /// Of the rest, only so many of the most frequent have (the earlier of two that are equally
  /// frequent). 0: all. Without weight on `row_order`.
  std::int64_t max_keys = 0;

  /// Rows behind those of the known keys that all other keys share, by hash. 0: other keys are an
  /// error.
  std::int64_t out_of_vocabulary_rows = 0;

  RowOrder row_order = RowOrder::kFirstSeen;
};

/// Rows of a table for keys that are strings or 64-bit integers. An immutable value; copies share;
/// any number of threads may look up. Known keys have the rows 0 .. num_keys() - 1, the others
/// share the rows from there to num_rows() - 1 by a hash that never changes.
class EMBERTABLE_API IdMap {
 public:
  /// No keys are known: all share `num_rows` rows by hash. Throws ValueError unless num_rows >= 1.
  static IdMap hashed(KeyKind kind, std::int64_t num_rows);

  KeyKind kind() const noexcept;
  std::int64_t num_keys() const noexcept;
  std::int64_t out_of_vocabulary_rows() const noexcept;

  /// vocabulary_size of the table: num_keys() + out_of_vocabulary_rows().
  std::int64_t num_rows() const noexcept;

  /// Throws TypeError for the wrong kind of key, KeyError naming an unknown key if no rows are
  /// shared.
  std::int64_t row(std::int64_t key) const;
  std::int64_t row(std::string_view key) const;

  /// out[i] = row(keys[i]). Throws as `row`, naming the position too, and ValueError unless out is
  /// as long as keys; out is unspecified then.
  void rows(std::span<const std::int64_t> keys, std::span<std::int64_t> out) const;
  void rows(std::span<const std::string_view> keys, std::span<std::int64_t> out) const;

  /// The row of a known key, else nothing. Throws TypeError for the wrong kind of key.
  std::optional<std::int64_t> find(std::int64_t key) const;
  std::optional<std::int64_t> find(std::string_view key) const;

  /// The key of a row that is not shared. Throws IndexError unless 0 <= row < num_keys(), TypeError
  /// if keys are of the other kind. The view lives as long as a copy of this map does.
  std::int64_t integer_key(std::int64_t row) const;
  std::string_view string_key(std::int64_t row) const;

  /// The map as bytes, the same for equal maps. Little-endian, version 1:
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

  /// Throws DataLoss naming the rule that the bytes break.
  static IdMap from_bytes(std::string_view bytes);

  /// The same keys with the same rows, and as many shared ones.
  friend EMBERTABLE_API bool operator==(const IdMap& a, const IdMap& b) noexcept;

 private:
  friend class IdMapBuilder;
  explicit IdMap(std::shared_ptr<const input::KeyRows> keys) : keys_(std::move(keys)) {}
  std::shared_ptr<const input::KeyRows> keys_;
};

/// Counts keys and makes an id map of them. Not to be shared between threads.
class EMBERTABLE_API IdMapBuilder {
 public:
  explicit IdMapBuilder(KeyKind kind);
  IdMapBuilder(IdMapBuilder&&) noexcept;
  IdMapBuilder& operator=(IdMapBuilder&&) noexcept;
  ~IdMapBuilder();

  /// A key was seen `count` times. Throws TypeError for the wrong kind of key, ValueError unless
  /// count >= 1 or beyond 2^32 - 2 different keys.
  void add(std::int64_t key, std::int64_t count = 1);
  void add(std::string_view key, std::int64_t count = 1);
  void add(std::span<const std::int64_t> keys);
  void add(std::span<const std::string_view> keys);

  /// Different keys seen so far.
  std::int64_t num_keys() const noexcept;

  /// Throws ValueError naming the option and its rule. The builder may go on counting.
  IdMap build(const IdMapOptions& options = {}) const;

 private:
  std::unique_ptr<input::CountedKeys> counted_;
};

}  // namespace embertable
