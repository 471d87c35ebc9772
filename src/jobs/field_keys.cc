#include "jobs/field_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "jobs/number_token.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kPadding = KeyHead::kBytes;

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

FieldKeys::FieldKeys(KeyRules rules, std::vector<KeyField> fields, std::vector<std::string> names)
    : rules_(std::move(rules)),
      fields_(std::move(fields)),
      names_(std::move(names)),
      vocabulary_(rules_.by_column ? KeyKind::kString : rules_.kind,
                  rules_.hash_rows > 0                        ? rules_.hash_rows
                  : rules_.min_count > 0 && !rules_.by_column ? 1
                                                              : 0),
      rare_(fields_.size(), -1) {
  for (const std::string& name : names_) {
    const std::string text = rules_.by_column ? name + "=" : "";
    prefixes_.push_back({text, KeyHead::of(text)});
  }
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
  const std::size_t used = used_bytes_;
  const std::size_t queued = queue_.size();
  try {
    for (std::size_t f = 0; f < fields_.size(); ++f) push_field(reader, f);
  } catch (const BrokenRecord&) {
    queue_.resize(queued);
    used_bytes_ = used;
    throw;
  }
  record_ends_.push_back(queue_.size());
}

void FieldKeys::pop() {
  record_ends_.pop_back();
  queue_.resize(record_ends_.empty() ? 0 : record_ends_.back());
}

void FieldKeys::push_field(const CsvReader& reader, std::size_t field) {
  const KeyField& which = fields_[field];
  std::string_view text = reader.text(which.place);
  if (!rules_.missing.empty() && text == rules_.missing) text = {};
  if (which.number) {
    std::array<char, kNumberTokenBytes> out;
    const std::optional<std::string_view> token = number_token(text, out);
    if (!token) reader.refuse(which.place, "a number or empty");
    queue(prefixes_[field], *token);
  } else if (!rules_.separator.empty()) {
    push_list(reader, text);
  } else if (rules_.kind == KeyKind::kInteger) {
    push_integer(reader, field, text);
  } else {
    queue(prefixes_[field], text);
  }
}

void FieldKeys::push_integer(const CsvReader& reader, std::size_t field, std::string_view text) {
  if (text.empty() && (rules_.by_column || rules_.hash_rows > 0))
    return queue(prefixes_[field], text);
  if (text.empty() && rules_.min_count > 0) {
    queue_.push_back({.size = kNone});
    return;
  }
  const std::optional<std::int64_t> value = integer_of(text);
  if (!value) reader.refuse(fields_[field].place, "an integer of 64 bits");
  if (rules_.by_column) return queue(prefixes_[field], fmt::format_int(*value).c_str());
  queue_integer(*value);
}

void FieldKeys::push_list(const CsvReader& reader, std::string_view text) {
  for_each_part(text, rules_.separator, [&](std::string_view part) {
    if (rules_.kind == KeyKind::kString) return queue(prefixes_[0], part);
    const std::optional<std::int64_t> value = integer_of(part);
    if (!value) {
      reader.refuse(fields_[0].place,
                    fmt::format("a list of integers separated by '{}'", rules_.separator));
    }
    queue_integer(*value);
  });
}

void FieldKeys::queue(const Prefix& prefix, std::string_view key) {
  const std::size_t size = prefix.text.size() + key.size();
  if (size >= KeyHead::kBytes) return queue_long(prefix.text, key);
  if (used_bytes_ + kPadding > bytes_.size()) bytes_.resize(2 * used_bytes_ + (1 << 14));
  const KeyHead head = prefix.head.then(KeyHead::of(key), prefix.text.size());
  char* const out = bytes_.data() + used_bytes_;
  std::memcpy(out, &head, sizeof(head));
  std::uint64_t hash = 0;
  if (rules_.hash_rows == 0) {
    hash = KeyTable::hash(head, {out, size});
    vocabulary_.keys().prefetch(hash);
  }
  queue_.push_back(
      {hash, static_cast<std::uint32_t>(used_bytes_), static_cast<std::uint32_t>(size)});
  used_bytes_ += kPadding;
}

void FieldKeys::queue_long(std::string_view prefix, std::string_view key) {
  const std::size_t size = prefix.size() + key.size();
  const std::size_t padded = (size + kPadding - 1) / kPadding * kPadding;
  if (used_bytes_ + padded > bytes_.size()) bytes_.resize(2 * (used_bytes_ + padded) + (1 << 14));
  char* const out = bytes_.data() + used_bytes_;
  std::copy(prefix.begin(), prefix.end(), out);
  std::copy(key.begin(), key.end(), out + prefix.size());
  const std::uint64_t hash = KeyTable::hash({out, size});
  vocabulary_.keys().prefetch(hash);
  queue_.push_back(
      {hash, static_cast<std::uint32_t>(used_bytes_), static_cast<std::uint32_t>(size)});
  used_bytes_ += padded;
}

void FieldKeys::queue_integer(std::int64_t key) {
  static const Prefix kNothing;
  queue(kNothing, {reinterpret_cast<const char*>(&key), sizeof(key)});
}

std::int32_t FieldKeys::number_of(const Queued& queued, std::uint32_t times) {
  if (queued.size == kNone) return -1;
  const std::string_view key(bytes_.data() + queued.begin, queued.size);
  if (rules_.hash_rows > 0) return static_cast<std::int32_t>(vocabulary_.shared_row(key));
  if (frozen_) return vocabulary_.keys().find(key, queued.hash);
  KeyHead head;
  std::memcpy(&head, key.data(), sizeof(head));
  return vocabulary_.keys().add(head, key, queued.hash, times);
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
  queue_.clear();
  record_ends_.clear();
  used_bytes_ = 0;
}

void FieldKeys::finish() {
  if (frozen_ || rules_.hash_rows > 0) return;
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
