#include "apps/jobs/keys/field_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

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
      vocabulary_(rules_.map_kind(), rules_.shared_rows()),
      rare_(fields.size(), -1) {
  const Take take = !rules_.separator.empty()          ? Take::kTexts
                    : rules_.kind == KeyKind::kInteger ? Take::kInteger
                                                       : Take::kText;
  bool numbers = false;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::string prefix = rules_.by_column ? names_[f] + "=" : "";
    const bool codes = fields[f].number && fields[f].limits.empty();
    fields_.push_back({fields[f].place,
                       codes              ? Take::kNumber
                       : fields[f].number ? Take::kLimits
                                          : take,
                       prefix, KeyHead::of(prefix), std::move(fields[f].limits)});
    numbers = numbers || codes;
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
    rules_.hash_rows > 0 ? push_fields<true>(reader) : push_fields<false>(reader);
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

/// Makes room for at least `more` entries after the queued ones.
void FieldKeys::make_room(std::size_t more) {
  if (queue_.size() - queued_ < more) queue_.resize(2 * queued_ + more);
}

template <bool kHashed>
inline void FieldKeys::queue_short(Queued& to, KeyHead head, std::size_t size) const {
  to.size = static_cast<std::uint32_t>(size);
  to.head = kHashed ? head : head.with_size(size);
  if (kHashed) return;
  const std::uint64_t hash = KeyTable::hash_of_short(to.head);
  to.hash = static_cast<std::uint32_t>(hash);
  vocabulary_.keys().prefetch(hash);
}

/// Queues the most frequent fields, short texts and short whole numbers, directly.
template <bool kHashed>
void FieldKeys::push_fields(const CsvReader& reader) {
  make_room(fields_.size());
  Queued* next = queue_.data() + queued_;
  std::size_t tokens = 0;
  for (std::size_t f = 0; f < fields_.size(); ++f, tokens += kNumberCodes) {
    const Field& field = fields_[f];
    std::string_view text = reader.text(field.place);
    if (!rules_.missing.empty() && text == rules_.missing) text = text.substr(0, 0);
    const std::size_t size = field.prefix.size() + text.size();
    if (field.take == Take::kText && size < KeyHead::kBytes) {
      queue_short<kHashed>(*next++, field.head.then(KeyHead::of_padded(text), field.prefix.size()),
                           size);
      continue;
    }
    if (field.take == Take::kNumber) {
      if (const std::int32_t code = codes_.of(text); code >= 0) {
        next->size = kCode;
        next->hash = static_cast<std::uint32_t>(tokens + static_cast<std::size_t>(code));
        ++next;
        continue;
      }
    }
    queued_ = static_cast<std::size_t>(next - queue_.data());
    push_field(reader, f, text);
    make_room(fields_.size());
    next = queue_.data() + queued_;
  }
  queued_ = static_cast<std::size_t>(next - queue_.data());
}

void FieldKeys::push_field(const CsvReader& reader, std::size_t f, std::string_view text) {
  const Field& field = fields_[f];
  switch (field.take) {
    case Take::kText:
      return queue(field.prefix, text);
    case Take::kNumber:
      return push_number(reader, f, text);
    case Take::kLimits:
      return push_limits(reader, field, text);
    case Take::kInteger:
      return push_integer(reader, field, text);
    case Take::kTexts:
      return push_list(reader, field, text);
  }
}

/// Queues a text that has no code.
void FieldKeys::push_number(const CsvReader& reader, std::size_t f, std::string_view text) {
  std::array<char, kNumberTokenBytes> out;
  const std::optional<std::string_view> token = number_token(text, out);
  if (!token) reader.refuse(fields_[f].place, "a number or empty");
  queue(fields_[f].prefix, *token);
}

void FieldKeys::push_limits(const CsvReader& reader, const Field& field, std::string_view text) {
  const std::optional<std::string> token = limit_token(text, field.limits);
  if (!token) reader.refuse(field.place, "a number or empty");
  queue(field.prefix, *token);
}

void FieldKeys::push_integer(const CsvReader& reader, const Field& field, std::string_view text) {
  if (text.empty() && (rules_.by_column || rules_.hash_rows > 0)) return queue(field.prefix, text);
  if (text.empty() && rules_.min_count > 0) {
    make_room(1);
    queue_[queued_++].size = kNone;
    return;
  }
  const std::optional<std::int64_t> value = integer_of(text);
  if (!value) reader.refuse_key(field.place);
  if (rules_.by_column) return queue(field.prefix, fmt::format_int(*value).c_str());
  queue_integer(*value);
}

void FieldKeys::push_list(const CsvReader& reader, const Field& field, std::string_view text) {
  for_each_part(text, rules_.separator, [&](std::string_view part) {
    if (rules_.kind == KeyKind::kString) return queue({}, part);
    const std::optional<std::int64_t> value = integer_of(part);
    if (!value) {
      reader.refuse(field.place,
                    fmt::format("a list of integers separated by '{}'", rules_.separator));
    }
    queue_integer(*value);
  });
}

void FieldKeys::queue(std::string_view prefix, std::string_view key) {
  make_room(1);
  Queued& queued = queue_[queued_++];
  const std::size_t size = prefix.size() + key.size();
  if (size < KeyHead::kBytes) {
    const KeyHead head = KeyHead::of(prefix).then(KeyHead::of(key), prefix.size());
    return rules_.hash_rows > 0 ? queue_short<true>(queued, head, size)
                                : queue_short<false>(queued, head, size);
  }
  queued.size = static_cast<std::uint32_t>(size);
  queued.head.high = bytes_.size();
  bytes_.insert(bytes_.end(), prefix.begin(), prefix.end());
  bytes_.insert(bytes_.end(), key.begin(), key.end());
  if (rules_.hash_rows > 0) return;
  queued.head.low = KeyTable::hash({bytes_.data() + queued.head.high, size});
  queued.hash = static_cast<std::uint32_t>(queued.head.low);
  vocabulary_.keys().prefetch(queued.head.low);
}

void FieldKeys::queue_integer(std::int64_t key) {
  queue({}, {reinterpret_cast<const char*>(&key), sizeof(key)});
}

/// Prefetches the keys that those of the queue are compared with.
void FieldKeys::guess() {
  if (rules_.hash_rows > 0) return;
  guesses_.resize(queue_.size());
  const KeyTable& keys = vocabulary_.keys();
  for (std::size_t i = 0; i < queued_; ++i) {
    if (queue_[i].size < kCode) guesses_[i] = keys.guess(queue_[i].hash);
  }
}

inline std::int32_t FieldKeys::number_of(std::size_t place, std::uint32_t times) {
  const Queued& queued = queue_[place];
  if (queued.size == kCode) return number_of_token(queued.hash, times);
  if (rules_.hash_rows > 0 || queued.size >= KeyHead::kBytes) return number_now(queued, times);
  const std::int32_t guess = guesses_[place];
  if (!vocabulary_.keys().has(guess, queued.head)) return number_now(queued, times);
  if (!frozen_) vocabulary_.keys().see(guess, times);
  return guess;
}

std::int32_t FieldKeys::number_now(const Queued& queued, std::uint32_t times) {
  if (queued.size == kNone) return -1;
  const bool is_short = queued.size < KeyHead::kBytes;
  const char* const bytes =
      is_short ? reinterpret_cast<const char*>(&queued.head) : bytes_.data() + queued.head.high;
  const std::string_view key(bytes, queued.size);
  if (rules_.hash_rows > 0) return static_cast<std::int32_t>(vocabulary_.shared_row(key));
  KeyTable& keys = vocabulary_.keys();
  if (!is_short) {
    return frozen_ ? keys.find(key, queued.head.low) : keys.add(key, queued.head.low, times);
  }
  return frozen_ ? keys.find_short(queued.head, queued.hash)
                 : keys.add_short(queued.head, queued.hash, times);
}

/// Returns the number of a key that is not queued.
std::int32_t FieldKeys::number_of_key(std::string_view key, std::uint32_t times) {
  if (rules_.hash_rows > 0) return static_cast<std::int32_t>(vocabulary_.shared_row(key));
  if (frozen_) return vocabulary_.find(key);
  return vocabulary_.keys().add(key, KeyTable::hash(key), times);
}

void FieldKeys::number_token_now(std::size_t place) {
  const std::string key = token_key(place);
  tokens_[place].number_plus_2 = 2 + number_of_key(key, 0);
}

std::string FieldKeys::token_key(std::size_t place) const {
  std::array<char, kNumberTokenBytes> out;
  const auto code = static_cast<std::int32_t>(place % kNumberCodes);
  return fields_[place / kNumberCodes].prefix + std::string(code_token(code, out));
}

/// Adds to the vocabulary how often tokens were seen.
void FieldKeys::count_tokens() {
  for (std::size_t place = 0; place < tokens_.size(); ++place) {
    if (tokens_[place].seen == 0) continue;
    const std::string key = token_key(place);
    vocabulary_.keys().add(key, KeyTable::hash(key), std::exchange(tokens_[place].seen, 0));
  }
}

void FieldKeys::number(std::span<const std::uint8_t> trains, std::int32_t* out,
                       std::int64_t stride) {
  guess();
  std::size_t next = 0;
  for (const std::uint8_t times : trains) {
    for (std::size_t f = 0; f < fields_.size(); ++f) out[f] = number_of(next++, times);
    out += stride;
  }
  clear();
}

void FieldKeys::number_lists(std::span<const std::uint8_t> trains, std::vector<std::int32_t>& ids,
                             std::vector<std::int64_t>& splits) {
  guess();
  std::size_t next = 0;
  for (std::size_t r = 0; r < trains.size(); ++r) {
    for (; next < record_ends_[r]; ++next) ids.push_back(number_of(next, trains[r]));
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
      for (std::int32_t& row : row_of_) row = row >= 0 ? sorted[row] : row;
    }
  }
  for (const std::string& name : names_) {
    if (rules_.min_count > 0 && rules_.by_column) vocabulary_.add(std::string_view(name));
  }
  find_rare_rows();
}

}  // namespace embertable::jobs
