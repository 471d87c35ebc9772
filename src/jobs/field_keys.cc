#include "jobs/field_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "jobs/number_token.h"

namespace embertable::jobs {
namespace {

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

FieldKeys::FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names)
    : rules_(std::move(rules)),
      names_(std::move(names)),
      vocabulary_(rules_.by_column ? KeyKind::kString : rules_.kind,
                  rules_.hash_rows > 0                        ? rules_.hash_rows
                  : rules_.min_count > 0 && !rules_.by_column ? 1
                                                              : 0),
      rare_(fields.size(), -1) {
  const Take take = !rules_.separator.empty()          ? Take::kTexts
                    : rules_.kind == KeyKind::kInteger ? Take::kInteger
                                                       : Take::kText;
  bool numbers = false;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::string prefix = rules_.by_column ? names_[f] + "=" : "";
    fields_.push_back(
        {fields[f].place, fields[f].number ? Take::kNumber : take, prefix, KeyHead::of(prefix)});
    numbers = numbers || fields[f].number;
  }
  if (numbers) tokens_.resize(fields_.size() * kNumberCodes);
}

FieldKeys::FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names,
                     const IdMap& known)
    : FieldKeys(std::move(rules), std::move(fields), std::move(names)) {
  frozen_ = true;
  vocabulary_ = Vocabulary(known);
  find_rare_rows();
}

void FieldKeys::find_rare_rows() {
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (rules_.by_column) {
      rare_[f] = vocabulary_.find(std::string_view(names_[f]));
    } else if (vocabulary_.shared_rows() == 1) {
      rare_[f] = vocabulary_.size();
    }
  }
}

void FieldKeys::push(const CsvReader& reader) {
  const std::size_t queued = queued_;
  const std::size_t used = bytes_.size();
  try {
    for (std::size_t f = 0; f < fields_.size(); ++f) push_field(reader, f);
  } catch (const BrokenRecord&) {
    queued_ = queued;
    bytes_.resize(used);
    throw;
  }
  record_ends_.push_back(queued_);
}

void FieldKeys::pop() {
  record_ends_.pop_back();
  queued_ = record_ends_.empty() ? 0 : record_ends_.back();
}

void FieldKeys::push_field(const CsvReader& reader, std::size_t f) {
  const Field& field = fields_[f];
  std::string_view text = reader.text(field.place);
  if (!rules_.missing.empty() && text == rules_.missing) text = text.substr(0, 0);
  switch (field.take) {
    case Take::kText:
      return text.size() <= KeyHead::kBytes ? queue(field, KeyHead::of_padded(text), text)
                                            : queue_long(field.prefix, text);
    case Take::kNumber:
      return push_number(reader, f, text);
    case Take::kInteger:
      return push_integer(reader, field, text);
    case Take::kTexts:
      return push_list(reader, field, text);
  }
}

void FieldKeys::push_number(const CsvReader& reader, std::size_t f, std::string_view text) {
  if (const std::int32_t code = number_code(text); code >= 0) {
    Queued& queued = next_queued();
    queued.size = kCode;
    queued.hash = f * kNumberCodes + static_cast<std::size_t>(code);
    return;
  }
  std::array<char, kNumberTokenBytes> out;
  const std::optional<std::string_view> token = number_token(text, out);
  if (!token) reader.refuse(fields_[f].place, "a number or empty");
  queue(fields_[f], *token);
}

void FieldKeys::push_integer(const CsvReader& reader, const Field& field, std::string_view text) {
  if (text.empty() && (rules_.by_column || rules_.hash_rows > 0)) return queue(field, text);
  if (text.empty() && rules_.min_count > 0) {
    next_queued().size = kNone;
    return;
  }
  const std::optional<std::int64_t> value = integer_of(text);
  if (!value) reader.refuse(field.place, "an integer of 64 bits");
  if (rules_.by_column) return queue(field, fmt::format_int(*value).c_str());
  queue_integer(*value);
}

void FieldKeys::push_list(const CsvReader& reader, const Field& field, std::string_view text) {
  for_each_part(text, rules_.separator, [&](std::string_view part) {
    if (rules_.kind == KeyKind::kString) return queue(field, part);
    const std::optional<std::int64_t> value = integer_of(part);
    if (!value) {
      reader.refuse(field.place,
                    fmt::format("a list of integers separated by '{}'", rules_.separator));
    }
    queue_integer(*value);
  });
}

void FieldKeys::queue_long(std::string_view prefix, std::string_view key) {
  Queued& queued = next_queued();
  queued.begin = static_cast<std::uint32_t>(bytes_.size());
  queued.size = static_cast<std::uint32_t>(prefix.size() + key.size());
  bytes_.insert(bytes_.end(), prefix.begin(), prefix.end());
  bytes_.insert(bytes_.end(), key.begin(), key.end());
  const std::string_view whole(bytes_.data() + queued.begin, queued.size);
  queued.head = KeyHead::of(whole);
  if (rules_.hash_rows > 0) return;
  queued.hash = KeyTable::hash(queued.head, whole);
  vocabulary_.keys().prefetch(queued.hash);
}

void FieldKeys::queue_integer(std::int64_t key) {
  static const Field kNothing;
  queue(kNothing, {reinterpret_cast<const char*>(&key), sizeof(key)});
}

std::int32_t FieldKeys::number_of(const Queued& queued, std::uint32_t times) {
  if (queued.size == kCode) return number_of_token(queued.hash, times);
  if (queued.size == kNone) return -1;
  const char* const bytes = queued.size <= KeyHead::kBytes
                                ? reinterpret_cast<const char*>(&queued.head)
                                : bytes_.data() + queued.begin;
  return number_of_key(queued.head, {bytes, queued.size}, queued.hash, times);
}

std::int32_t FieldKeys::number_of_key(KeyHead head, std::string_view key, std::uint64_t hash,
                                      std::uint32_t times) {
  if (rules_.hash_rows > 0) return static_cast<std::int32_t>(vocabulary_.shared_row(key));
  if (frozen_) return vocabulary_.keys().find(head, key, hash);
  return vocabulary_.keys().add(head, key, hash, times);
}

void FieldKeys::number_token_now(std::size_t place) {
  const std::string key = token_key(place);
  tokens_[place].number_plus_2 = 2 + number_of_key(KeyHead::of(key), key, KeyTable::hash(key), 0);
}

std::string FieldKeys::token_key(std::size_t place) const {
  std::array<char, kNumberTokenBytes> out;
  const auto code = static_cast<std::int32_t>(place % kNumberCodes);
  return fields_[place / kNumberCodes].prefix + std::string(code_token(code, out));
}

/// Tells the vocabulary how often tokens were seen.
void FieldKeys::count_tokens() {
  for (std::size_t place = 0; place < tokens_.size(); ++place) {
    if (tokens_[place].seen == 0) continue;
    const std::string key = token_key(place);
    vocabulary_.keys().add(key, KeyTable::hash(key), std::exchange(tokens_[place].seen, 0));
  }
}

void FieldKeys::number(std::span<const std::uint8_t> trains, std::int32_t* out,
                       std::int64_t stride) {
  const Queued* next = queue_.data();
  for (const std::uint8_t times : trains) {
    for (std::size_t f = 0; f < fields_.size(); ++f) out[f] = number_of(*next++, times);
    out += stride;
  }
  clear();
}

void FieldKeys::number_lists(std::span<const std::uint8_t> trains, std::vector<std::int32_t>& ids,
                             std::vector<std::int64_t>& splits) {
  std::size_t next = 0;
  for (std::size_t r = 0; r < trains.size(); ++r) {
    for (; next < record_ends_[r]; ++next) ids.push_back(number_of(queue_[next], trains[r]));
    splits.push_back(static_cast<std::int64_t>(ids.size()));
  }
  clear();
}

void FieldKeys::clear() noexcept {
  queued_ = 0;
  record_ends_.clear();
  bytes_.clear();
}

void FieldKeys::finish() {
  if (frozen_ || rules_.hash_rows > 0) return;
  count_tokens();
  if (rules_.min_count > 0) row_of_ = vocabulary_.keep(rules_.min_count);
  if (rules_.order == KeyOrder::kSorted) {
    const std::vector<std::int32_t> sorted = vocabulary_.sort();
    if (row_of_.empty()) {
      row_of_ = sorted;
    } else {
      for (std::int32_t& row : row_of_)
        row = row >= 0 ? sorted[static_cast<std::size_t>(row)] : row;
    }
  }
  for (const std::string& name : names_) {
    if (rules_.min_count > 0 && rules_.by_column) vocabulary_.add(std::string_view(name));
  }
  find_rare_rows();
}

}  // namespace embertable::jobs
