#include "apps/jobs/text/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/did_you_mean.h"

namespace embertable::jobs {
namespace {

/// Bytes that are read at once: few enough to leave room in a core's cache; more after a long
/// record.
constexpr std::int64_t kReadBytes = 1 << 18;
constexpr std::int64_t kMostReadBytes = 1 << 20;
constexpr std::size_t kMaxNamedColumns = 1 << 14;

/// Returns the start of a text for a message, which would end at a NUL.
std::string shown(std::string_view text) {
  std::string start;
  for (const char c : text.substr(0, kShownBytes)) c == '\0' ? start += "\\0" : start += c;
  return start + (text.size() > kShownBytes ? "..." : "");
}

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

}  // namespace

CsvReader::CsvReader(std::span<const std::string> paths, CsvFormat format,
                     std::span<const std::string> columns, std::int64_t skip_bad,
                     std::size_t optional)
    : paths_(paths.begin(), paths.end()),
      format_(std::move(format)),
      left_out_(skip_bad),
      source_(paths_.at(0)),
      buffer_(kReadBytes + LineMarks::kBeyond),
      marks_(format_.separator) {
  begin_file();
  if (format_.header) header_ = read_header();
  find_columns(columns, optional);
}

void CsvReader::begin_file() {
  record_ = rest_ = end_ = buffer_.data();
  exhausted_ = false;
  next_line_ = 1;
  while (end_ - rest_ < std::ssize(kByteOrderMark) && fill()) {
  }
  if (std::string_view(rest_, end_ - rest_).starts_with(kByteOrderMark))
    rest_ += kByteOrderMark.size();
}

bool CsvReader::next_file() {
  if (file_ + 1 == paths_.size()) return false;
  source_ = TextSource(paths_[++file_]);
  begin_file();
  if (format_.header && read_header() != header_) {
    throw ValueError(fmt::format("'{}' must have the columns of '{}', in the same order",
                                 paths_[file_], paths_[0]));
  }
  return true;
}

/// Reads the header as a record with all columns.
std::vector<std::string> CsvReader::read_header() {
  std::vector<std::int32_t> all(kMaxNamedColumns);
  std::iota(all.begin(), all.end(), 0);
  wanted_.swap(all);
  std::vector<Field> fields = std::exchange(fields_, std::vector<Field>(kMaxNamedColumns));
  std::vector<std::string> scratch =
      std::exchange(scratch_, std::vector<std::string>(kMaxNamedColumns));
  columns_ = 0;
  Found found = Found::kNoRecord;
  try {
    while (found != Found::kRecord && (rest_ != end_ || fill())) {
      found = parse();
      if (found == Found::kIncomplete) fill();
    }
    if (columns_ > static_cast<std::int64_t>(kMaxNamedColumns)) {
      broken(record_, fmt::format("a header must name at most {} columns", kMaxNamedColumns),
             std::to_string(columns_));
    }
  } catch (const BrokenRecord& error) {
    throw ValueError(error.what());  // no record that can be left out
  }
  if (found != Found::kRecord) {
    throw ValueError(fmt::format(
        "'{}' must start with a line that names its columns, got an empty file", paths_[file_]));
  }
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < columns_; ++i) names.emplace_back(fields_[i].text);
  wanted_.swap(all);
  fields_.swap(fields);
  scratch_.swap(scratch);
  return names;
}

/// Returns the index of a column, by its name or its number; empty if there is none. Throws
/// ValueError for the name of several columns.
std::optional<std::size_t> CsvReader::find_column(const std::string& column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found != header_.end()) {
    const auto other = std::find(found + 1, header_.end(), column);
    if (other == header_.end()) return static_cast<std::size_t>(found - header_.begin());
    throw ValueError(fmt::format(
        "'{}': a column's name must be of one column, got '{}', which is that of columns {} and "
        "{}; their numbers tell them apart",
        paths_[0], column, found - header_.begin() + 1, other - header_.begin() + 1));
  }
  std::int64_t number = 0;
  const char* last = column.data() + column.size();
  const auto parsed = std::from_chars(column.data(), last, number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == last && number >= 1;
  const std::int64_t most = format_.header ? columns_ : static_cast<std::int64_t>(kMaxNamedColumns);
  if (is_number && number <= most) return static_cast<std::size_t>(number - 1);
  return {};
}

void CsvReader::refuse_column(const std::string& column) const {
  if (!format_.header) {
    throw ValueError(fmt::format("'{}' has no header: a column must be a number from 1, got '{}'",
                                 paths_[0], column));
  }
  if (header_.size() == 1) {
    for (const char separator : {';', '\t', '|', ','}) {
      if (header_[0].find(separator) == std::string::npos) continue;
      throw ValueError(fmt::format(
          "'{}' has no column '{}': its first line is one column with '{}' in it, which may be "
          "meant as the field_separator",
          paths_[0], column, separator == '\t' ? "\\t" : std::string(1, separator)));
    }
  }
  throw ValueError(
      fmt::format("'{}' has no column '{}'{}", paths_[0], column, did_you_mean(column, header_)));
}

void CsvReader::find_columns(std::span<const std::string> columns, std::size_t optional) {
  fields_.assign(columns.size(), {});
  lacks_.assign(columns.size(), false);
  scratch_.assign(columns.size(), {});
  copies_.assign(columns.size(), -1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::optional<std::size_t> found = find_column(columns[i]);
    if (!found && (i < optional || !format_.header)) refuse_column(columns[i]);
    lacks_[i] = !found;
    if (!found) {
      names_.push_back(columns[i]);
      continue;
    }
    const std::size_t column = *found;
    const bool has_name =
        column < header_.size() && std::count(header_.begin(), header_.end(), header_[column]) == 1;
    names_.push_back(has_name ? header_[column] : columns[i]);
    if (wanted_.size() <= column) wanted_.resize(column + 1, -1);
    if (wanted_[column] < 0) {
      wanted_[column] = static_cast<std::int32_t>(i);
    } else {
      copies_[i] = wanted_[column];
      has_copies_ = true;
    }
  }
}

bool CsvReader::is_same(std::size_t i, std::size_t j) const noexcept {
  const auto first = [&](std::size_t place) {
    return copies_[place] >= 0 ? static_cast<std::size_t>(copies_[place]) : place;
  };
  return first(i) == first(j);
}

/// Reads more bytes after those at rest_, which are kept.
bool CsvReader::fill() {
  if (exhausted_) return false;
  marks_.forget();
  const std::int64_t kept = end_ - rest_;
  if (kept > kMaxRecord) {
    record_ = rest_;
    line_ = next_line_;
    too_long(rest_);
  }
  if (rest_ != buffer_.data()) std::memmove(buffer_.data(), rest_, kept);
  const std::int64_t size = std::clamp(kept, kReadBytes, kMostReadBytes);
  if (kept + size + LineMarks::kBeyond > std::ssize(buffer_))
    buffer_.resize(2 * kept + size + LineMarks::kBeyond);
  record_ = rest_ = buffer_.data();
  const std::int64_t got = source_.read(buffer_.data() + kept, size);
  end_ = rest_ + kept + got;
  buffer_[kept + got] = '\n';  // LineMarks needs an end of line
  exhausted_ = got == 0;
  return !exhausted_;
}

bool CsvReader::next() {
  for (;;) {
    try {
      if (!advance()) return false;
      left_out_.count_read();
      for (std::size_t i = 0; has_copies_ && i < copies_.size(); ++i) {
        if (copies_[i] >= 0) fields_[i] = fields_[copies_[i]];
      }
      return true;
    } catch (const BrokenRecord&) {
      left_out_.count_read();
      leave_out();
      skip_broken();
    }
  }
}

bool CsvReader::advance() {
  for (;;) {
    if (rest_ == end_ && !fill()) {
      if (!next_file()) return false;
      continue;
    }
    const Found found = parse();
    if (found == Found::kRecord) return true;
    if (found == Found::kIncomplete) fill();
  }
}

/// Moves to the line after the one with `broken_`.
void CsvReader::skip_broken() {
  next_line_ = line_of(broken_) + 1;
  rest_ = broken_;
  for (;;) {
    const void* const found = std::memchr(rest_, '\n', static_cast<std::size_t>(end_ - rest_));
    if (found != nullptr) {
      rest_ = static_cast<const char*>(found) + 1;
      return;
    }
    rest_ = end_;
    if (!fill()) return;
  }
}

/// Skips a comment; returns false if there is none.
bool CsvReader::skip_comment(Found& found) {
  const std::string_view held(rest_, end_ - rest_);
  found = Found::kIncomplete;
  if (!held.starts_with(format_.comment))
    return held.size() < format_.comment.size() && !exhausted_;
  const std::size_t cut = held.find('\n');
  if (cut == std::string_view::npos && !exhausted_) return true;
  rest_ = cut == std::string_view::npos ? end_ : rest_ + cut + 1;
  ++next_line_;
  found = Found::kNoRecord;
  return true;
}

/// Reads the record at rest_. Incomplete if the buffer ends first.
CsvReader::Found CsvReader::parse() {
  record_ = rest_;
  line_ = next_line_;
  if (Found found{}; !format_.comment.empty() && skip_comment(found)) return found;
  LineMarks marks = marks_;
  if (marks.place() != rest_) marks.seek(rest_);
  const bool trims = format_.trim;
  const std::size_t num_wanted = wanted_.size();
  const std::int32_t* const wanted = wanted_.data();
  Field* const fields = fields_.data();
  const char* p = record_;
  std::int64_t lines = 0;
  std::size_t column = 0;
  Field skipped;
  for (;; ++p) {
    const std::int32_t place = column < num_wanted ? wanted[column] : -1;
    Field& field = place >= 0 ? fields[place] : skipped;
    const char* const begin = trims ? first_of_field(p) : p;
    field.begin = begin;
    ++column;
    if (*begin == '"') [[unlikely]] {
      p = parse_quoted(begin, field, place >= 0 ? &scratch_[place] : nullptr);
      if (p == nullptr) return Found::kIncomplete;
      lines += std::count(begin, p, '\n');
      marks.seek(p);
      p = marks.next();
      if (*p == '\n') break;
      continue;
    }
    p = marks.next();
    const char* const last = trims || *p == '\n' ? last_of_field(begin, p) : p;
    field.text = {begin, static_cast<std::size_t>(last - begin)};
    if (*p == '\n') break;
  }
  if (p == end_ && !exhausted_) return Found::kIncomplete;
  marks_ = marks;
  return finish_record(p, static_cast<std::int64_t>(column), lines);
}

/// Returns the end of the blanks at p.
const char* CsvReader::first_of_field(const char* p) const noexcept {
  while (is_blank(*p) && *p != format_.separator) ++p;
  return p;
}

/// Returns the start of the line end and the blanks before p, but not before `begin`.
const char* CsvReader::last_of_field(const char* begin, const char* p) const noexcept {
  if (*p == '\n' && p != begin && p[-1] == '\r') --p;
  while (format_.trim && p > begin && is_blank(p[-1])) --p;
  return p;
}

/// Ends the record at `last`, which has this many fields and line breaks in quotes.
CsvReader::Found CsvReader::finish_record(const char* last, std::int64_t column,
                                          std::int64_t lines) {
  rest_ = last == end_ ? end_ : last + 1;
  next_line_ = line_ + lines + (last == end_ ? 0 : 1);
  if (column == 1 && columns_ != 1 &&
      (last == record_ || (last == record_ + 1 && *record_ == '\r'))) {
    return Found::kNoRecord;
  }
  if (last - record_ > kMaxRecord) too_long(last);
  if (columns_ == 0) {
    if (static_cast<std::int64_t>(wanted_.size()) > column && !format_.header)
      broken(last, fmt::format("column {} is wanted", wanted_.size()),
             fmt::format("{} columns", column));
    columns_ = column;
  }
  if (column != columns_) {
    broken(last, fmt::format("a record must have {} fields as the first line has", columns_),
           std::to_string(column));
  }
  return Found::kRecord;
}

/// Returns where the field ends, or null if the buffer ends first.
const char* CsvReader::parse_quoted(const char* begin, Field& field, std::string* scratch) {
  const char* p = begin + 1;
  const char* piece = p;
  bool doubled = false;
  for (;;) {
    p = static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(end_ - p)));
    if (p == nullptr || (p + 1 == end_ && !exhausted_)) {
      if (!exhausted_) return nullptr;
      broken(begin, "a quoted field must have a closing quote", "the end of the file");
    }
    if (p + 1 == end_ || p[1] != '"') break;
    if (scratch != nullptr) {
      if (!std::exchange(doubled, true)) scratch->clear();
      scratch->append(piece, p + 1);
    }
    p += 2;
    piece = p;
  }
  if (doubled) {
    scratch->append(piece, p);
    scratch->reserve(scratch->size() + kReadable);
  }
  field.text = doubled ? std::string_view(*scratch) : std::string_view(begin + 1, p - begin - 1);
  return end_of_quoted(begin, p + 1);
}

/// Parses what follows the closing quote of the field at `begin`. Returns the place of a separator
/// or the line's end, or null if the buffer ends before.
const char* CsvReader::end_of_quoted(const char* begin, const char* p) {
  while (format_.trim && p != end_ && is_blank(*p) && *p != format_.separator) ++p;
  if (p != end_ && *p == '\r') {
    if (p + 1 == end_ && !exhausted_) return nullptr;
    if (p + 1 == end_ || p[1] == '\n') ++p;
  }
  if (p != end_ && *p != format_.separator && *p != '\n') {
    broken_ = begin;
    throw BrokenRecord(position(p),
                       fmt::format("after a closing quote must come '{}' or the end of the line",
                                   format_.separator),
                       fmt::format("'{}'", shown({p, 1})));
  }
  return p;
}

std::int64_t CsvReader::integer(std::size_t i) const {
  const std::string_view field = text(i);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != field.data() + field.size()) refuse_key(i);
  return value;
}

double CsvReader::number(std::size_t i) const {
  const std::string_view field = text(i);
  // A small whole number, the usual label.
  if (field.size() == 1 && field[0] >= '0' && field[0] <= '9') return field[0] - '0';
  double value = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != field.data() + field.size() ||
      !std::isfinite(value))
    refuse(i, "a number");
  return value == 0 ? 0 : value;  // -0 is 0
}

void CsvReader::refuse(std::size_t i, std::string_view expected) const {
  throw BrokenRecord(position(fields_[i].begin),
                     fmt::format("'{}' must be {}", names_[i], expected),
                     fmt::format("'{}'", shown(text(i))));
}

void CsvReader::refuse_key(std::size_t i) const {
  refuse(i, text(i).empty() ? "an integer of 64 bits"
                            : "an integer of 64 bits, or any text with keys = \"string\"");
}

void CsvReader::broken(const char* where, const std::string& rule, const std::string& got) const {
  broken_ = where;
  throw BrokenRecord(position(where), rule, got);
}

void CsvReader::too_long(const char* where) const {
  broken_ = where;
  throw BrokenRecord(position(record_),
                     fmt::format("a record must have at most {} bytes", kMaxRecord), "");
}

std::int64_t CsvReader::line_of(const char* where) const {
  return line_ + std::count(record_, where, '\n');
}

std::string CsvReader::position(const char* where) const {
  const char* start = where;
  while (start != record_ && start[-1] != '\n') --start;
  return fmt::format("{}:{}:{}", paths_[file_], line_of(where), where - start + 1);
}

}  // namespace embertable::jobs
