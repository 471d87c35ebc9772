#include "apps/jobs/text/field_rule.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// How rules with an operand begin.
constexpr std::pair<std::string_view, FieldRule::Kind> kComparisons[] = {
    {">= ", FieldRule::Kind::kAtLeast},
    {"> ", FieldRule::Kind::kAbove},
    {"<= ", FieldRule::Kind::kAtMost},
    {"< ", FieldRule::Kind::kBelow},
    {"is ", FieldRule::Kind::kIs}};

/// Returns an integer of 64 bits without rounding, which a double could not hold; else `number`.
long double exact(std::string_view text, double number) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::int64_t integer = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, integer);
  return parsed.ec == std::errc() && parsed.ptr == end ? static_cast<long double>(integer) : number;
}

/// Takes exactly `count` digits from the front of a text; empty if they are not there.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return {};
  std::int64_t number = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return number;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// Takes two digits below `limit`, after a colon unless `colon` is false.
std::optional<std::int64_t> take_part(std::string_view& text, std::int64_t limit, bool colon) {
  if (colon && !take(text, ":")) return {};
  const std::optional<std::int64_t> part = take_digits(text, 2);
  return part && *part < limit ? part : std::nullopt;
}

/// Takes the digits behind a decimal point as millionths; digits beyond six change nothing.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
  std::int64_t millionths = 0, unit = 100'000;
  bool any = false;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), unit /= 10) {
    millionths += unit * (text[0] - '0');
    any = true;
  }
  return any ? std::optional(millionths) : std::nullopt;
}

/// Takes "Z", "+02:00", "+0200" or "+02" and returns the seconds that local time is ahead by.
std::optional<std::int64_t> take_zone(std::string_view& text) {
  if (take(text, "Zz")) return 0;
  const bool behind = text.starts_with('-');
  if (!take(text, "+-")) return {};
  const std::optional<std::int64_t> hours = take_part(text, 24, false);
  if (!hours) return {};
  std::optional<std::int64_t> minutes = 0;
  if (!text.empty()) minutes = take_part(text, 60, text.starts_with(':'));
  if (!minutes) return {};
  const std::int64_t seconds = *hours * 3600 + *minutes * 60;
  return behind ? -seconds : seconds;
}

/// Takes "23:59", "23:59:59" or "23:59:59.5", with or without a zone, as millionths of a second.
std::optional<std::int64_t> take_time_of_day(std::string_view& text) {
  const std::optional<std::int64_t> hour = take_part(text, 24, false);
  const std::optional<std::int64_t> minute = take_part(text, 60, true);
  if (!hour || !minute) return {};
  std::optional<std::int64_t> second = 0, fraction = 0, zone = 0;
  if (text.starts_with(':')) {
    second = take_part(text, 60, true);
    if (second && take(text, ".")) fraction = take_fraction(text);
  }
  if (second && fraction && !text.empty()) zone = take_zone(text);
  if (!second || !fraction || !zone) return {};
  return (*hour * 3600 + *minute * 60 + *second - *zone) * 1'000'000 + *fraction;
}

}  // namespace

FieldRule field_rule(const std::string& column, const std::string& text) {
  FieldRule rule{.column = column};
  if (text == "filled") return rule;
  if (text == "digit first") {
    rule.kind = FieldRule::Kind::kDigitFirst;
    return rule;
  }
  for (const auto& [prefix, kind] : kComparisons) {
    if (!text.starts_with(prefix)) continue;
    rule.kind = kind;
    rule.text = text.substr(prefix.size());
    if (kind == FieldRule::Kind::kIs) return rule;
    const char* const end = rule.text.data() + rule.text.size();
    double number = 0;
    const auto parsed = std::from_chars(rule.text.data(), end, number);
    rule.number = exact(rule.text, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return rule;
  }
  throw ValueError(fmt::format(
      "must be \"filled\", \"digit first\", \"> N\", \">= N\", \"< N\", \"<= N\" or \"is TEXT\", "
      "got \"{}\"",
      text));
}

bool holds(const FieldRule& rule, const CsvReader& reader, std::size_t field) {
  const std::string_view text = reader.text(field);
  const auto number = [&] { return exact(text, reader.number(field)); };
  switch (rule.kind) {
    case FieldRule::Kind::kFilled:
      return !text.empty();
    case FieldRule::Kind::kDigitFirst:
      return !text.empty() && text[0] >= '0' && text[0] <= '9';
    case FieldRule::Kind::kAbove:
      return !text.empty() && number() > rule.number;
    case FieldRule::Kind::kAtLeast:
      return !text.empty() && number() >= rule.number;
    case FieldRule::Kind::kBelow:
      return !text.empty() && number() < rule.number;
    case FieldRule::Kind::kAtMost:
      return !text.empty() && number() <= rule.number;
    case FieldRule::Kind::kIs:
      break;
  }
  return text == rule.text;
}

bool hold(std::span<const FieldRule> rules, const CsvReader& reader, std::size_t first) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (reader.has(first + i) && !holds(rules[i], reader, first + i)) return false;
  }
  return true;
}

std::string none_left(std::span<const FieldRule> rules, std::string_view records,
                      std::string_view rest) {
  if (rules.empty())
    return fmt::format("must have {}{}{}, got none", records, rest.empty() ? "" : " ", rest);
  std::string text;
  for (const FieldRule& rule : rules) {
    std::string_view begin = rule.kind == FieldRule::Kind::kFilled ? "filled" : "digit first";
    for (const auto& [prefix, kind] : kComparisons)
      if (kind == rule.kind) begin = prefix;
    text += fmt::format("{}{} = \"{}{}\"", text.empty() ? "" : ", ", rule.column, begin, rule.text);
  }
  return fmt::format("must have {} that data.where accepts{}{}, got none by {}", records,
                     rest.empty() ? "" : ", ", rest, text);
}

std::string describe(std::span<const FieldRule> rules) {
  std::string text;
  for (const FieldRule& rule : rules)
    text += fmt::format("{:?} {} {} {:?}\n", rule.column, static_cast<int>(rule.kind),
                        static_cast<double>(rule.number), rule.text);
  return text;
}

std::optional<Time> time_of(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return Time{number, false};
  const std::optional<std::int64_t> year = take_digits(text, 4);
  if (!year || !take(text, "-")) return {};
  const std::optional<std::int64_t> month = take_digits(text, 2);
  if (!month || !take(text, "-")) return {};
  const std::optional<std::int64_t> day = take_digits(text, 2);
  if (!day) return {};
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return {};
  std::optional<std::int64_t> time = 0;
  if (!text.empty()) time = take(text, "Tt ") ? take_time_of_day(text) : std::nullopt;
  if (!time || !text.empty()) return {};
  constexpr std::int64_t kDay = std::int64_t{86'400} * 1'000'000;
  return Time{std::chrono::sys_days(date).time_since_epoch().count() * kDay + *time, true};
}

std::int64_t TimeFields::read(const CsvReader& reader, std::size_t field) {
  const std::optional<Time> time = time_of(reader.text(field));
  if (!time) reader.refuse(field, "an integer or a time as 2009-12-31 23:59:59");
  if (are_dates_.value_or(time->is_date) != time->is_date) {
    reader.refuse(field, *are_dates_
                             ? "a date, as the times before it, which integers do not follow"
                             : "an integer, as the times before it, which dates do not follow");
  }
  are_dates_ = time->is_date;
  return time->number;
}

}  // namespace embertable::jobs
