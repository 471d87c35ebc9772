#include "apps/jobs/text/field_rule.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {

FieldRule field_rule(const std::string& column, const std::string& text) {
  FieldRule rule{.column = column};
  if (text == "filled") return rule;
  if (text == "digit first") {
    rule.kind = FieldRule::Kind::kDigitFirst;
    return rule;
  }
  constexpr std::pair<std::string_view, FieldRule::Kind> kComparisons[] = {
      {">= ", FieldRule::Kind::kAtLeast},
      {"> ", FieldRule::Kind::kAbove},
      {"<= ", FieldRule::Kind::kAtMost},
      {"< ", FieldRule::Kind::kBelow},
      {"is ", FieldRule::Kind::kIs}};
  for (const auto& [prefix, kind] : kComparisons) {
    if (!text.starts_with(prefix)) continue;
    rule.kind = kind;
    rule.text = text.substr(prefix.size());
    if (kind == FieldRule::Kind::kIs) return rule;
    const char* const end = rule.text.data() + rule.text.size();
    const auto parsed = std::from_chars(rule.text.data(), end, rule.number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return rule;
  }
  throw ValueError(fmt::format(
      "must be \"filled\", \"digit first\", \"> N\", \">= N\", \"< N\", \"<= N\" or \"is TEXT\", "
      "got \"{}\"",
      text));
}

bool holds(const FieldRule& rule, const CsvReader& reader, std::size_t field) {
  const std::string_view text = reader.text(field);
  switch (rule.kind) {
    case FieldRule::Kind::kFilled:
      return !text.empty();
    case FieldRule::Kind::kDigitFirst:
      return !text.empty() && text[0] >= '0' && text[0] <= '9';
    case FieldRule::Kind::kAbove:
      return reader.number(field) > rule.number;
    case FieldRule::Kind::kAtLeast:
      return reader.number(field) >= rule.number;
    case FieldRule::Kind::kBelow:
      return reader.number(field) < rule.number;
    case FieldRule::Kind::kAtMost:
      return reader.number(field) <= rule.number;
    case FieldRule::Kind::kIs:
      break;
  }
  return text == rule.text;
}

std::optional<std::int64_t> time_of(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  constexpr std::string_view kForm = "dddd-dd-dd dd:dd:dd";
  if (text.size() != 10 && text.size() != 16 && text.size() != kForm.size()) return {};
  number = 0;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = i < text.size() ? text[i] : kForm[i] == 'd' ? '0' : kForm[i];
    if (kForm[i] == 'd') {
      if (c < '0' || c > '9') return {};
      number = number * 10 + (c - '0');
    } else if (c != kForm[i] && !(i == 10 && c == 'T')) {
      return {};
    }
  }
  return number;
}

}  // namespace embertable::jobs
