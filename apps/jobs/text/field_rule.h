#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// Rule that a field must keep for its record to count.
struct FieldRule {
  enum class Kind : std::uint8_t { kFilled, kDigitFirst, kAbove, kAtLeast, kBelow, kAtMost, kIs };

  std::string column;
  Kind kind = Kind::kFilled;
  long double number = 0;  ///< operand of a comparison: a binary64 or an integer of 64 bits
  std::string text;        ///< operand of kIs
};

/// Parses a rule: "filled", "digit first", "> 0", ">= 1", "< 9", "<= 9" or "is TEXT". Throws
/// ValueError naming what it must be.
FieldRule field_rule(const std::string& column, const std::string& text);

/// True if the field of a record keeps the rule; an empty field keeps no comparison. Throws what
/// CsvReader::number throws.
bool holds(const FieldRule& rule, const CsvReader& reader, std::size_t field);

/// True if a record keeps all rules, whose fields are those from `first` on. A rule for a column
/// that the file lacks is kept. Throws what `holds` throws.
bool hold(std::span<const FieldRule> rules, const CsvReader& reader, std::size_t first);

/// Says that the rules of data.where leave nothing: `must have records that data.where accepts, got
/// none by rating = ">= 4", user = "filled"`. `rest` is what the records must be besides, or "".
std::string none_left(std::span<const FieldRule> rules, std::string_view records,
                      std::string_view rest = "");

/// Describes everything that the rules depend on, a line each.
std::string describe(std::span<const FieldRule> rules);

/// A time as a number that grows with it: an integer as it is, a date as microseconds since 1970.
struct Time {
  std::int64_t number = 0;
  bool is_date = false;
};

/// Parses an integer, or a time as ISO 8601 has it: a day "2009-12-31", or with the time of day
/// behind a blank or a T: "23:59", "23:59:59" or "23:59:59.25", each also with a zone, "Z", "+02",
/// "+0200" or "+02:00". Without a zone it is UTC. Empty for another text.
std::optional<Time> time_of(std::string_view text);

/// Reads the times of one column, which are all integers or all dates.
class TimeFields {
 public:
  /// Returns the time in a field. Throws BrokenRecord for another text, and for a time of the other
  /// kind than those before it.
  std::int64_t read(const CsvReader& reader, std::size_t field);

 private:
  std::optional<bool> are_dates_;  ///< set once one is read
};

}  // namespace embertable::jobs
