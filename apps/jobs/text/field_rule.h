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

/// True if the field of a record keeps the rule. Throws what CsvReader::number throws.
bool holds(const FieldRule& rule, const CsvReader& reader, std::size_t field);

/// Returns a time as a number that grows with it: an integer as it is, "2009-12-31 23:59:59" or a
/// part of it that names a day or a minute by its digits. Empty for another text.
std::optional<std::int64_t> time_of(std::string_view text);

}  // namespace embertable::jobs
