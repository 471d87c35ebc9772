#include "jobs/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/nearest.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kMaxNamedColumns = 1 << 14;

std::string shown(std::string_view text) {
  return std::string(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "..." : "");
}

}  // namespace

CsvReader::CsvReader(const std::string& path, CsvFormat format,
                     std::span<const std::string> columns)
    : path_(path), format_(format), source_(path), buffer_(kChunk) {
  record_ = rest_ = end_ = buffer_.data();
  while (end_ - rest_ < 3 && fill()) {
  }
  if (std::string_view(rest_, static_cast<std::size_t>(end_ - rest_)).starts_with("\xEF\xBB\xBF")) {
    rest_ += 3;
  }
  if (format_.header) {
    // The header is read as a record all of whose columns are wanted.
    wanted_.resize(kMaxNamedColumns);
    for (std::size_t i = 0; i < wanted_.size(); ++i) wanted_[i] = static_cast<std::int32_t>(i);
    fields_.resize(wanted_.size());
    scratch_.resize(wanted_.size());
    if (!next()) {
      throw ValueError(fmt::format(
          "'{}' must start with a line that names its columns, got an empty file", path_));
    }
    if (columns_ > static_cast<std::int64_t>(kMaxNamedColumns)) {
      broken(record_, fmt::format("a header must name at most {} columns, got {}", kMaxNamedColumns,
                                  columns_));
    }
    for (std::int64_t i = 0; i < columns_; ++i)
      names_.emplace_back(fields_[static_cast<std::size_t>(i)].text);
  }
  find_columns(columns);
}

void CsvReader::find_columns(std::span<const std::string> columns) {
  wanted_.clear();
  fields_.assign(columns.size(), {});
  scratch_.assign(columns.size(), {});
  copies_.assign(columns.size(), -1);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    auto found = std::find(names_.begin(), names_.end(), columns[i]);
    std::size_t column = static_cast<std::size_t>(found - names_.begin());
    if (found == names_.end()) {
      std::int64_t number = 0;
      const char* last = columns[i].data() + columns[i].size();
      const auto parsed = std::from_chars(columns[i].data(), last, number);
      const bool is_number = parsed.ec == std::errc() && parsed.ptr == last && number >= 1;
      if (is_number && (!format_.header || number <= columns_)) {
        column = static_cast<std::size_t>(number - 1);
      } else if (format_.header) {
        throw ValueError(fmt::format(
            "'{}' has no column '{}'; the nearest is '{}'", path_, columns[i],
            nearest_name(columns[i], std::vector<std::string_view>(names_.begin(), names_.end()))));
      } else {
        throw ValueError(fmt::format(
            "'{}' has no header: a column must be a number from 1, got '{}'", path_, columns[i]));
      }
    }
    if (wanted_.size() <= column) wanted_.resize(column + 1, -1);
    if (wanted_[column] < 0) {
      wanted_[column] = static_cast<std::int32_t>(i);
    } else {
      copies_[i] = wanted_[column];
    }
  }
  names_.assign(columns.begin(), columns.end());
}

bool CsvReader::fill() {
  if (exhausted_) return false;
  const std::int64_t kept = end_ - rest_;
  if (kept >= kMaxRecord)
    broken(rest_, fmt::format("a record must have at most {} bytes", kMaxRecord));
  if (rest_ != buffer_.data()) std::memmove(buffer_.data(), rest_, static_cast<std::size_t>(kept));
  if (kept + kChunk > static_cast<std::int64_t>(buffer_.size())) {
    buffer_.resize(static_cast<std::size_t>(2 * kept + kChunk));
  }
  record_ = rest_ = buffer_.data();
  const std::int64_t got = source_.read(buffer_.data() + kept, kChunk);
  end_ = rest_ + kept + got;
  exhausted_ = got == 0;
  return !exhausted_;
}

bool CsvReader::next() {
  for (;;) {
    if (rest_ == end_ && !fill()) return false;
    bool complete = false;
    const bool is_record = parse(complete);
    if (complete && is_record) {
      for (std::size_t i = 0; i < copies_.size(); ++i) {
        if (copies_[i] >= 0) fields_[i] = fields_[static_cast<std::size_t>(copies_[i])];
      }
      return true;
    }
    if (!complete) fill();
  }
}

/// Reads the record at rest_. `complete` is false where the buffer ends first; returns false for an
/// empty line.
bool CsvReader::parse(bool& complete) {
  record_ = rest_;
  line_ = next_line_;
  const char separator = format_.separator;
  const char* p = record_;
  std::int64_t column = 0;
  std::int64_t lines = 0;
  for (;;) {
    const std::int32_t place = static_cast<std::size_t>(column) < wanted_.size()
                                   ? wanted_[static_cast<std::size_t>(column)]
                                   : -1;
    Field skipped;
    Field& field = place >= 0 ? fields_[static_cast<std::size_t>(place)] : skipped;
    const char* begin = p;
    if (p != end_ && *p == '"') {
      p = parse_quoted(p, &field, place >= 0 ? static_cast<std::size_t>(place) : scratch_.size());
      if (p == nullptr) return false;
      lines += std::count(begin, p, '\n');
      if (p != end_ && *p == '\r') {
        if (p + 1 == end_ && !exhausted_) return false;
        if (p + 1 == end_ || p[1] == '\n') ++p;
      }
      if (p != end_ && *p != separator && *p != '\n') {
        broken(p,
               fmt::format("after a closing quote must come '{}' or the end of the line, got '{}'",
                           separator, shown({p, 1})));
      }
    } else {
      while (p != end_ && *p != separator && *p != '\n') ++p;
      const char* last = p;
      if ((p == end_ || *p == '\n') && last != begin && last[-1] == '\r') --last;
      field.text = {begin, static_cast<std::size_t>(last - begin)};
    }
    field.begin = begin;
    if (p == end_ && !exhausted_) return false;
    ++column;
    if (p == end_ || *p == '\n') break;
    ++p;
  }
  const char* last = p;
  if (p != end_) {
    ++p;
    ++lines;
  }
  rest_ = p;
  next_line_ = line_ + lines;
  complete = true;
  if (column == 1 && columns_ != 1 &&
      (last == record_ || (last == record_ + 1 && *record_ == '\r'))) {
    return false;
  }
  if (columns_ == 0) {
    if (static_cast<std::int64_t>(wanted_.size()) > column && !format_.header) {
      broken(last, fmt::format("column {} is wanted, got {} columns", wanted_.size(), column));
    }
    columns_ = column;
  }
  if (column != columns_) {
    broken(last, fmt::format("a record must have {} fields as the first line has, got {}", columns_,
                             column));
  }
  return true;
}

/// Returns what follows the closing quote, or null where the buffer ends before.
const char* CsvReader::parse_quoted(const char* begin, Field* field, std::size_t scratch) {
  const char* p = begin + 1;
  const char* piece = p;
  std::string* unquoted = nullptr;
  for (;;) {
    p = static_cast<const char*>(std::memchr(p, '"', static_cast<std::size_t>(end_ - p)));
    if (p == nullptr || (p + 1 == end_ && !exhausted_)) {
      if (!exhausted_) return nullptr;
      if (p == nullptr)
        broken(begin, "a quoted field must have a closing quote, got the end of the file");
    }
    if (p + 1 == end_ || p[1] != '"') break;
    if (scratch < scratch_.size()) {
      if (unquoted == nullptr) {
        unquoted = &scratch_[scratch];
        unquoted->clear();
      }
      unquoted->append(piece, p + 1);
    }
    p += 2;
    piece = p;
  }
  if (unquoted != nullptr) {
    unquoted->append(piece, p);
    field->text = *unquoted;
  } else {
    field->text = {begin + 1, static_cast<std::size_t>(p - begin - 1)};
  }
  return p + 1;
}

std::int64_t CsvReader::integer(std::size_t i) const {
  const std::string_view field = text(i);
  std::int64_t value = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != field.data() + field.size()) {
    refuse(i, "an integer of 64 bits");
  }
  return value;
}

double CsvReader::number(std::size_t i) const {
  const std::string_view field = text(i);
  // A small whole number, the usual rating.
  if (field.size() == 1 && field[0] >= '0' && field[0] <= '9') return field[0] - '0';
  double value = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != field.data() + field.size()) refuse(i, "a number");
  return value;
}

void CsvReader::refuse(std::size_t i, std::string_view expected) const {
  throw ValueError(fmt::format("{}: '{}' must be {}, got '{}'", position(fields_[i].begin),
                               names_[i], expected, shown(text(i))));
}

void CsvReader::broken(const char* where, const std::string& rule) const {
  throw ValueError(position(where) + ": " + rule);
}

std::string CsvReader::position(const char* where) const {
  std::int64_t line = line_;
  const char* start = record_;
  for (const char* p = record_; p < where; ++p) {
    if (*p == '\n') {
      ++line;
      start = p + 1;
    }
  }
  return fmt::format("{}:{}:{}", path_, line, where - start + 1);
}

}  // namespace embertable::jobs
