#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// Rule that a field must keep for its record to count.
struct FieldRule {
  enum class Kind : std::uint8_t { kFilled, kDigitFirst, kAbove, kAtLeast, kBelow, kAtMost, kIs };

  std::string column;
  Kind kind = Kind::kFilled;
  double number = 0;  ///< operand of a comparison
  std::string text;   ///< operand of kIs
};

/// Parses a rule: "filled", "digit first", "> 0", ">= 1", "< 9", "<= 9" or "is TEXT". Throws
/// ValueError naming what it must be.
FieldRule field_rule(const std::string& column, const std::string& text);

/// True if the field of a record keeps the rule; an empty field keeps no comparison. Throws what
/// CsvReader::number throws.
bool holds(const FieldRule& rule, const CsvReader& reader, std::size_t field);

/// Describes everything that the rule depends on.
std::string describe(const FieldRule& rule);

/// A time as a number that grows with it: an integer as it is, a date by its digits.
struct Time {
  std::int64_t number = 0;
  bool is_date = false;
};

/// Parses an integer, or a time of the calendar: "2009-12-31", "2009-12-31 23:59" or "2009-12-31
/// 23:59:59", with a blank or a T between day and hour. Empty for another text.
std::optional<Time> time_of(std::string_view text);

}  // namespace embertable::jobs
