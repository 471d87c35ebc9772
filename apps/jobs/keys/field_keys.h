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

/// How the fields of records become keys, and keys rows of a table.
struct KeyRules {
  KeyKind kind = KeyKind::kInteger;
  KeyOrder order = KeyOrder::kFirst;
  std::string separator = {};  ///< between the keys of a list; "": one key per field
  std::string missing = {};    ///< a field with this text counts as empty

  /// Keys of each column are its own, as texts "COLUMN=KEY".
  bool by_column = false;

  /// 0: every key has a row. Else keys that are seen less often where samples train share a row,
  /// one for each column: that of the key "COLUMN", or else the one behind those of the keys.
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
/// becomes a token (number_token).
struct KeyField {
  std::size_t place = 0;
  bool number = false;
};

/// Turns the fields of records into numbers of keys: queues the keys of some records, whose places
/// in the vocabulary are loaded meanwhile, then numbers them all at once.
class FieldKeys {
 public:
  /// Records that are best queued before they are numbered.
  static constexpr std::int64_t kQueue = 16;

  /// `names`: of the columns, by field.
  FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names);

  /// For records of which a saved map says the rows: no key is added.
  FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names,
            const IdMap& known);

  /// Queues the keys of the reader's record. Throws BrokenRecord for a field that is no such key;
  /// nothing is queued then.
  void push(const CsvReader& reader);

  /// Takes the record back that was pushed last.
  void pop();

  /// Numbers what is queued and empties the queue. trains[r]: whether record r counts. One key a
  /// field: number of field f of record r goes to out[r * stride + f], -1 for an unknown one.
  void number(std::span<const std::uint8_t> trains, std::int32_t* out, std::int64_t stride);

  /// The same of lists: appends to `ids`, and to `splits` where each record's ends.
  void number_lists(std::span<const std::uint8_t> trains, std::vector<std::int32_t>& ids,
                    std::vector<std::int64_t>& splits);

  /// After the last record: decides which keys have rows. Numbers then go through `row`.
  void finish();

  /// The row that a number of a field has come to.
  std::int32_t row(std::int32_t number, std::size_t field) const noexcept {
    const std::int32_t known = number >= 0 && !row_of_.empty() ? row_of_[number] : number;
    return known >= 0 ? known : rare_[field];
  }

  /// True if rows are other numbers than `number` gave.
  bool renumbers() const noexcept { return !row_of_.empty() || frozen_; }

  std::size_t width() const noexcept { return fields_.size(); }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  Vocabulary take() && { return std::move(vocabulary_); }

 private:
  /// How the keys of a field are taken; a Field also has what stands before them.
  enum class Take : std::uint8_t { kTexts, kText, kInteger, kNumber };
  struct Field {
    std::size_t place = 0;
    Take take = Take::kText;
    std::string prefix;
    KeyHead head;  ///< head of the prefix
  };
  /// A key, or a token of a field by its code.
  struct Queued {
    KeyHead head;            ///< a long key has its hash here, and where in bytes_ it begins
    std::uint32_t hash = 0;  ///< what tables use of it; of a code: its place in tokens_
    std::uint32_t size = 0;  ///< or kNone, kCode
  };
  static constexpr std::uint32_t kNone = 0xffffffff;  ///< an empty field where keys are integers
  static constexpr std::uint32_t kCode = 0xfffffffe;

  /// What a token of a number has come to.
  struct Token {
    std::int32_t number_plus_2 = 0;  ///< 0: not yet known, 1: no number
    std::uint32_t seen = 0;          ///< beyond what the vocabulary knows
  };

  template <bool kHashed>
  void push_fields(const CsvReader& reader);
  void push_field(const CsvReader& reader, std::size_t field, std::string_view text);
  void push_number(const CsvReader& reader, std::size_t field, std::string_view text);
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

  std::vector<Queued> queue_;  ///< longer than what is used
  std::size_t queued_ = 0;
  std::vector<std::int32_t> guesses_;     ///< guesses for the keys in queue_, by place
  std::vector<std::size_t> record_ends_;  ///< in queue_
  std::vector<char> bytes_;               ///< bytes of the long keys
};

}  // namespace embertable::jobs
