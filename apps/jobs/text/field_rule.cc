#include "apps/jobs/text/field_rule.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// True if the digits YYYYMMDDHHMMSS are those of a day of the calendar and a time of the day.
bool is_of_calendar(std::int64_t digits) {
  const auto next = [&digits](std::int64_t base) {
    const std::int64_t part = digits % base;
    digits /= base;
    return part;
  };
  const std::int64_t second = next(100), minute = next(100), hour = next(100);
  const std::int64_t day = next(100), month = next(100), year = digits;
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return false;
  const bool leaps = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  constexpr std::int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return day >= 1 && day <= kDays[month - 1] + (leaps && month == 2 ? 1 : 0);
}

}  // namespace

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
      return !text.empty() && reader.number(field) > rule.number;
    case FieldRule::Kind::kAtLeast:
      return !text.empty() && reader.number(field) >= rule.number;
    case FieldRule::Kind::kBelow:
      return !text.empty() && reader.number(field) < rule.number;
    case FieldRule::Kind::kAtMost:
      return !text.empty() && reader.number(field) <= rule.number;
    case FieldRule::Kind::kIs:
      break;
  }
  return text == rule.text;
}

std::string describe(const FieldRule& rule) {
  return fmt::format("{:?} {} {} {:?}\n", rule.column, static_cast<int>(rule.kind), rule.number,
                     rule.text);
}

std::optional<Time> time_of(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return Time{number, false};
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
  if (!is_of_calendar(number)) return {};
  return Time{number, true};
}

}  // namespace embertable::jobs
