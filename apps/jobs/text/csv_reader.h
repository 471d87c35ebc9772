#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/convert/text_source.h"
#include "apps/jobs/text/broken_record.h"
#include "apps/jobs/text/line_marks.h"

namespace embertable::jobs {

/// How a text file is cut into fields.
struct CsvFormat {
  char separator = ',';
  bool header = true;        ///< the first line names the columns
  bool trim = false;         ///< blanks around a field do not belong to it
  std::string comment = {};  ///< lines that begin with this text are not records; "": all are
};

/// Reads chosen columns of separated text, from several files one after the other, plain or
/// compressed (TextSource), in memory bounded by the longest record. A field may be in double
/// quotes and then hold separators, line breaks and, doubled, quotes. Lines end with LF or CRLF; a
/// byte order mark and empty lines are skipped. Up to a maximum number of broken records are left
/// out; reading goes on with the next line, after quotes with the one after the opening one.
class CsvReader {
 public:
  /// Maximum length of a record, in bytes, a CR at its end included.
  static constexpr std::int64_t kMaxRecord = 16 << 20;

  /// `columns` are names from the header or, as "1", "2", ..., numbers of columns; without a header
  /// only numbers. If there are several files, each has a header, the same. `skip_bad` is the
  /// number of records to leave out before a broken one is an error. A header may lack the columns
  /// from place `optional` on. Throws IoError if a file cannot be read, ValueError naming the
  /// nearest column for one that it lacks and for a name that several columns have.
  CsvReader(std::span<const std::string> paths, CsvFormat format,
            std::span<const std::string> columns, std::int64_t skip_bad = 0,
            std::size_t optional = SIZE_MAX);
  CsvReader(const std::string& path, CsvFormat format, std::span<const std::string> columns)
      : CsvReader(std::span(&path, 1), std::move(format), columns) {}

  /// Moves to the next record; returns false at the end of the last file. Throws BrokenRecord,
  /// IoError if reading fails, DataLoss for compressed data that ends early or is damaged.
  bool next();

  /// Counts a record as left out, or rethrows if that would be one too many. Called in a handler of
  /// BrokenRecord.
  void leave_out() { left_out_.count(); }
  const LeftOut& left_out() const noexcept { return left_out_.so_far(); }

  /// Returns the field of column `i` of `columns`, quotes resolved. At least kReadable bytes from
  /// its first on are readable, whatever its size. Valid until next().
  static constexpr std::size_t kReadable = 16;
  std::string_view text(std::size_t i) const noexcept { return fields_[i].text; }

  /// False if the header lacks column `i` of `columns`; its text is then empty.
  bool has(std::size_t i) const noexcept { return !lacks_[i]; }

  /// Returns the name of column `i` of `columns` in the header if no other column has it, else its
  /// number.
  const std::string& name(std::size_t i) const noexcept { return names_[i]; }

  /// True if `i` and `j` of `columns` are the same column, however they are spelled.
  bool is_same(std::size_t i, std::size_t j) const noexcept;

  /// Throw BrokenRecord for a field that is not such a number.
  std::int64_t integer(std::size_t i) const;
  double number(std::size_t i) const;

  /// Throws BrokenRecord: "FILE:LINE:COLUMN: 'name' must be EXPECTED, got 'text'".
  [[noreturn]] void refuse(std::size_t i, std::string_view expected) const;

  /// Refuses a key that is no integer: of one that ends with ".0" it says that texts are keys too.
  [[noreturn]] void refuse_key(std::size_t i) const;

  /// Returns the names of all columns; empty without a header.
  const std::vector<std::string>& header() const noexcept { return header_; }

  /// Returns the 1-based line where the current record starts.
  std::int64_t line() const noexcept { return line_; }

 private:
  struct Field {
    std::string_view text;
    const char* begin = nullptr;  ///< in the buffer, at the opening quote if there is one
  };
  enum class Found : std::uint8_t { kRecord, kNoRecord, kIncomplete };

  void begin_file();
  bool next_file();
  bool fill();
  bool advance();
  Found parse();
  bool skip_comment(Found& found);
  const char* first_of_field(const char* p) const noexcept;
  const char* last_of_field(const char* begin, const char* p) const noexcept;
  const char* parse_quoted(const char* begin, Field& field, std::string* scratch);
  const char* end_of_quoted(const char* begin, const char* p);
  Found finish_record(const char* last, std::int64_t column, std::int64_t lines);
  void skip_broken();
  std::vector<std::string> read_header();
  void find_columns(std::span<const std::string> columns, std::size_t optional);
  std::optional<std::size_t> find_column(const std::string& column) const;
  [[noreturn]] void refuse_column(const std::string& column) const;
  [[noreturn]] void broken(const char* where, const std::string& rule,
                           const std::string& got = "") const;
  [[noreturn]] void too_long(const char* where) const;
  std::int64_t line_of(const char* where) const;
  std::string position(const char* where) const;

  std::vector<std::string> paths_;
  std::size_t file_ = 0;  ///< index into paths_
  CsvFormat format_;
  LeftOutCounter left_out_;
  TextSource source_;
  std::vector<char> buffer_;  ///< slightly longer than its contents; begins with a line end
  LineMarks marks_;
  const char* record_ = nullptr;  ///< start of the current record
  const char* rest_ = nullptr;    ///< what comes after it
  const char* end_ = nullptr;
  bool exhausted_ = false;                ///< nothing comes after end_
  mutable const char* broken_ = nullptr;  ///< reading goes on after the line with it
  std::int64_t line_ = 0;
  std::int64_t next_line_ = 1;
  std::int64_t columns_ = 0;          ///< fields per record; 0 before the first
  std::vector<std::string> header_;   ///< header of the first file
  std::vector<std::string> names_;    ///< by place in fields_
  std::vector<bool> lacks_;           ///< by place: no column has it
  std::vector<std::int32_t> wanted_;  ///< by column: its first place in fields_, or -1
  std::vector<std::int32_t> copies_;  ///< by place: an earlier place of the same column, or -1
  bool has_copies_ = false;
  std::vector<Field> fields_;
  std::vector<std::string> scratch_;  ///< by place: fields whose quotes were doubled
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
