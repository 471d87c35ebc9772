#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/text_source.h"

namespace embertable::jobs {

/// How a text file is cut into fields.
struct CsvFormat {
  char separator = ',';
  bool header = true;  ///< the first line names the columns
};

/// Reads chosen columns of a separated text file, plain or compressed (TextSource), in memory
/// bounded by its longest record. A field may stand in double quotes and then hold separators, line
/// breaks and, doubled, quotes. Lines end with LF or CRLF; a byte order mark and empty lines are
/// skipped.
class CsvReader {
 public:
  /// Longest record, in bytes.
  static constexpr std::int64_t kMaxRecord = 16 << 20;

  /// `columns`: names from the header or, as "1", "2", ..., numbers of columns; without a header
  /// only numbers. Throws IoError if the file cannot be read, ValueError naming the nearest column
  /// for one that it lacks.
  CsvReader(const std::string& path, CsvFormat format, std::span<const std::string> columns);

  /// Goes to the next record; false at the end. Throws ValueError naming file, line and column of a
  /// broken record, IoError if reading fails, DataLoss for compressed data that ends early or fails
  /// its checksum.
  bool next();

  /// The field of column `i` of `columns`, quotes resolved. Valid until next().
  std::string_view text(std::size_t i) const noexcept { return fields_[i].text; }

  /// Throw ValueError naming file, line, column and text of a field that is no such number.
  std::int64_t integer(std::size_t i) const;
  double number(std::size_t i) const;

  /// Throws ValueError: "FILE:LINE:COLUMN: 'name' must be EXPECTED, got 'text'".
  [[noreturn]] void refuse(std::size_t i, std::string_view expected) const;

  /// 1-based, of the current record's start.
  std::int64_t line() const noexcept { return line_; }

 private:
  struct Field {
    std::string_view text;
    const char* begin = nullptr;  ///< in the buffer, at the opening quote if there is one
  };

  bool fill();
  bool parse(bool& complete);
  const char* parse_quoted(const char* begin, Field* field, std::size_t scratch);
  void find_columns(std::span<const std::string> columns);
  [[noreturn]] void broken(const char* where, const std::string& rule) const;
  std::string position(const char* where) const;

  std::string path_;
  CsvFormat format_;
  TextSource source_;
  std::vector<char> buffer_;
  const char* record_ = nullptr;  ///< start of the current record
  const char* rest_ = nullptr;    ///< what comes after it
  const char* end_ = nullptr;
  bool exhausted_ = false;  ///< nothing comes after end_
  std::int64_t line_ = 0;
  std::int64_t next_line_ = 1;
  std::int64_t columns_ = 0;  ///< fields per record; 0 before the first
  std::vector<std::string> names_;
  std::vector<std::int32_t> wanted_;  ///< by column: its first place in fields_, or -1
  std::vector<std::int32_t> copies_;  ///< by place: an earlier place of the same column, or -1
  std::vector<Field> fields_;
  std::vector<std::string> scratch_;  ///< fields whose quotes were doubled
};

/// Calls part(text) for each piece of a list field. An empty field is the empty list.
template <class Part>
void for_each_part(std::string_view list, std::string_view separator, Part part) {
  if (list.empty()) return;
  for (;;) {
    const std::size_t cut = list.find(separator);
    part(list.substr(0, cut));
    if (cut == std::string_view::npos) return;
    list.remove_prefix(cut + separator.size());
  }
}

}  // namespace embertable::jobs
