#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {

/// What a look at a column has found. Counts are of the records that were looked at.
struct SeenColumn {
  /// Number of different values beyond which they are not counted.
  static constexpr std::size_t kMostDistinct = 100'000;

  std::string name;  ///< from the header, else the number from 1

  /// Name from a header in which it does not tell the column, so that `name` is the number: other
  /// columns have it too, or it reads as a range of columns. Else "".
  std::string called;
  std::int64_t empty = 0;
  std::int64_t integers = 0;  ///< 64-bit ones
  std::int64_t decimals = 0;  ///< other numbers
  std::int64_t times = 0;     ///< days and times of the calendar
  std::int64_t texts = 0;
  bool whole = true;  ///< decimals are whole numbers, as 17775.0 is
  double lowest = 0, highest = 0;
  std::unordered_set<std::string> distinct;  ///< values that are not empty, up to kMostDistinct

  std::int64_t filled() const noexcept { return integers + decimals + times + texts; }
  bool are_integers() const noexcept { return integers > 0 && integers == filled(); }
  bool are_numbers() const noexcept { return filled() > 0 && integers + decimals == filled(); }
  bool are_times() const noexcept { return times > 0 && times == filled(); }
  bool has_all() const noexcept { return distinct.size() < kMostDistinct; }
};

/// What a look at a file of records has found.
struct SeenFile {
  /// Records that are looked at, from the front.
  static constexpr std::int64_t kMostRecords = 1'000'000;

  CsvFormat format;
  std::int64_t records = 0;
  std::int64_t broken = 0;  ///< records besides that are not as the others
  bool all = true;          ///< the file has no more records
  std::vector<SeenColumn> columns;

  /// True for a file without columns: each line has the key of a user, which no other line begins
  /// with, and behind it keys of items, all integers with blanks between them.
  bool lists = false;
};

/// Looks at a file, plain or compressed: its separator (a comma, tab, semicolon or vertical bar, or
/// a blank between numbers), whether blanks stand around its fields, whether it has a header, its
/// columns, and whether they are lists instead. The first of several columns' lines is a header if
/// none of its fields is empty, a number or a time, and none occurs in its column again. Memory
/// grows with the different values. Throws IoError or DataLoss if the file cannot be read,
/// ValueError if it has no record, or is no regular file, as it is read several times.
/// `may_have_header` = false: the first line is a record.
SeenFile look_at(const std::string& path, bool may_have_header = true);

/// Returns for each of some columns, by their indices, which share its most frequent value has of
/// the records in which all of them are filled: 0 if there are none. Reads the records that
/// look_at() has looked at; memory and errors likewise.
std::vector<double> greatest_shares(const std::string& path, const SeenFile& seen,
                                    std::span<const std::size_t> columns);

}  // namespace embertable::jobs
