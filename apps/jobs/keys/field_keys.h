#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/keys/vocabulary.h"
#include "apps/jobs/text/csv_reader.h"
#include "apps/jobs/text/number_token.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

enum class KeyOrder : std::uint8_t { kFirst, kSorted };

/// How the fields of records become keys, and keys become rows of a table.
struct KeyRules {
  KeyKind kind = KeyKind::kInteger;
  KeyOrder order = KeyOrder::kFirst;
  std::string separator = {};  ///< between the keys of a list; "": one key per field
  std::string missing = {};    ///< a field with this text counts as empty

  /// If true, each column has keys of its own, which are texts "COLUMN=KEY".
  bool by_column = false;

  /// If 0, every key has a row. Otherwise keys that are seen less often in samples that train share
  /// one row per column: that of the key "COLUMN", or else the one after those of the keys.
  std::int64_t min_count = 0;

  /// If above 0, keys share this many rows by the hash of id maps, and none has one of its own.
  std::int64_t hash_rows = 0;

  /// Kind of the id map of these keys, and the number of rows that keys without a row of their own
  /// share.
  KeyKind map_kind() const noexcept { return by_column ? KeyKind::kString : kind; }
  std::int64_t shared_rows() const noexcept {
    return hash_rows > 0 ? hash_rows : min_count > 0 && !by_column ? 1 : 0;
  }
};

/// A field that holds keys: its place in a reader's columns, and whether it is a number that
/// becomes a token: number_token, or with limits limit_token.
struct KeyField {
  std::size_t place = 0;
  bool number = false;
  std::vector<double> limits = {};
};

/// Turns the fields of records into numbers of keys: queues the keys of some records while their
/// places in the vocabulary are prefetched, then numbers them all at once.
class FieldKeys {
 public:
  /// Number of records that are best queued before they are numbered.
  static constexpr std::int64_t kQueue = 16;

  /// `names` are those of the columns, by field.
  FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names);

  /// For records whose rows a saved map knows: no key is added.
  FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names,
            const IdMap& known);

  /// Queues the keys of the reader's record. Throws BrokenRecord for a field that is no such key;
  /// nothing is queued then.
  void push(const CsvReader& reader);

  /// Removes the record that was pushed last.
  void pop();

  /// Numbers what is queued and empties the queue. trains[r] says whether record r counts. For
  /// fields with one key: the number of field f of record r goes to out[r * stride + f], -1 for an
  /// unknown key.
  void number(std::span<const std::uint8_t> trains, std::int32_t* out, std::int64_t stride);

  /// Does the same for lists: appends to `ids`, and to `splits` where each record's ids end.
  void number_lists(std::span<const std::uint8_t> trains, std::vector<std::int32_t>& ids,
                    std::vector<std::int64_t>& splits);

  /// Counts a number that `number` gave for a record that did not count, since it was not known yet
  /// that it trains.
  void see(std::int32_t number) noexcept {
    if (number >= 0 && rules_.hash_rows == 0) vocabulary_.keys().see(number, 1);
  }

  /// Decides which keys have rows. Requires: the last record was numbered. Numbers then go through
  /// `row`.
  void finish();

  /// Returns the row for a number of a field.
  std::int32_t row(std::int32_t number, std::size_t field) const noexcept {
    const std::int32_t known = number >= 0 && !row_of_.empty() ? row_of_[number] : number;
    return known >= 0 ? known : rare_[field];
  }

  /// True if rows differ from the numbers that `number` gave.
  bool renumbers() const noexcept { return !row_of_.empty() || frozen_; }

  std::size_t width() const noexcept { return fields_.size(); }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  Vocabulary take() && { return std::move(vocabulary_); }

 private:
  /// How the keys of a field are read; a Field also has their prefix.
  enum class Take : std::uint8_t { kTexts, kText, kInteger, kNumber, kLimits };
  struct Field {
    std::size_t place = 0;
    Take take = Take::kText;
    std::string prefix;
    KeyHead head;                ///< head of the prefix
    std::vector<double> limits;  ///< kLimits
  };
  /// A key, or a token of a field by its code.
  struct Queued {
    KeyHead head;            ///< a long key has here its hash, and its position in bytes_
    std::uint32_t hash = 0;  ///< hash for tables; for a code, its place in tokens_
    std::uint32_t size = 0;  ///< or kNone, kCode
  };
  static constexpr std::uint32_t kNone = 0xffffffff;  ///< an empty field where keys are integers
  static constexpr std::uint32_t kCode = 0xfffffffe;

  /// Key number and count of a number's token.
  struct Token {
    std::int32_t number_plus_2 = 0;  ///< 0: not yet known, 1: no number
    std::uint32_t seen = 0;          ///< beyond what the vocabulary knows
  };

  template <bool kHashed>
  void push_fields(const CsvReader& reader);
  void push_field(const CsvReader& reader, std::size_t field, std::string_view text);
  void push_number(const CsvReader& reader, std::size_t field, std::string_view text);
  void push_limits(const CsvReader& reader, const Field& field, std::string_view text);
  void push_integer(const CsvReader& reader, const Field& field, std::string_view text);
  void push_list(const CsvReader& reader, const Field& field, std::string_view text);
  void queue(std::string_view prefix, std::string_view key);
  void queue_integer(std::int64_t key);
  void make_room(std::size_t more);
  template <bool kHashed>
  [[gnu::always_inline]] void queue_short(Queued& to, KeyHead head, std::size_t size) const;
  void guess();
  [[gnu::always_inline]] std::int32_t number_of(std::size_t place, std::uint32_t times);
  std::int32_t number_now(const Queued& queued, std::uint32_t times);
  std::int32_t number_of_key(std::string_view key, std::uint32_t times);
  [[gnu::always_inline]] std::int32_t number_of_token(std::size_t place, std::uint32_t times) {
    Token& token = tokens_[place];
    if (token.number_plus_2 == 0) number_token_now(place);
    token.seen += std::min(times, std::numeric_limits<std::uint32_t>::max() - token.seen);
    return token.number_plus_2 - 2;
  }
  void number_token_now(std::size_t place);
  std::string token_key(std::size_t place) const;
  void count_tokens();
  void clear() noexcept;
  void find_rare_rows();

  KeyRules rules_;
  std::vector<Field> fields_;
  std::vector<std::string> names_;
  bool frozen_ = false;  ///< no key is added
  Vocabulary vocabulary_;
  NumberCodes codes_;
  std::vector<Token> tokens_;         ///< [fields, kNumberCodes] where a field has numbers
  std::vector<std::int32_t> row_of_;  ///< by number, -1: rare; empty: the number
  std::vector<std::int32_t> rare_;    ///< by field; -1: none

  std::vector<Queued> queue_;  ///< may be longer than the used part
  std::size_t queued_ = 0;
  std::vector<std::int32_t> guesses_;     ///< guesses for the keys in queue_, by place
  std::vector<std::size_t> record_ends_;  ///< in queue_
  std::vector<char> bytes_;               ///< bytes of the long keys
};

}  // namespace embertable::jobs
