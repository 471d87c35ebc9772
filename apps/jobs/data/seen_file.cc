#include "apps/jobs/data/seen_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "apps/jobs/text/column_range.h"
#include "apps/jobs/text/field_rule.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Records that decide which separator a file has.
constexpr std::int64_t kTried = 1'000;
constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();

template <class T>
bool parses(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

/// Returns the fields of the first record.
std::vector<std::string> first_record(const std::string& path, char separator) {
  const CsvReader reader(path, {.separator = separator}, {});
  return reader.header();
}

/// Reads up to `most` records and calls visit() for each; returns false if there are more.
template <class Visit>
bool read_some(CsvReader& reader, std::int64_t most, const Visit& visit) {
  for (std::int64_t record = 0; record < most; ++record) {
    for (;;) {
      try {
        if (!reader.next()) return true;
        break;
      } catch (const BrokenRecord&) {
        reader.leave_out();
      }
    }
    visit();
  }
  return false;
}

/// True if blanks cut the first lines into as many fields, all of them numbers but for a header's.
bool has_numbers_between_blanks(const std::string& path) {
  const CsvFormat format = {.separator = ' ', .header = false};
  const std::size_t fields = first_record(path, ' ').size();
  if (fields < 2) return false;
  std::vector<std::string> columns;
  for (std::size_t i = 1; i <= fields; ++i) columns.push_back(std::to_string(i));
  CsvReader reader(std::span(&path, 1), format, columns, kAnyNumber);
  std::int64_t lines = 0;
  bool are_numbers = true;
  read_some(reader, kTried, [&] {
    if (++lines == 1) return;
    for (std::size_t i = 0; i < fields; ++i) {
      double number = 0;
      are_numbers &= parses(reader.text(i), number);
    }
  });
  return lines > 1 && are_numbers && reader.left_out().total() == 0;
}

/// Returns the separator that cuts the first records alike, into most fields; a blank if no other
/// does. Where all of them leave most records broken, the file is text: a tab, which its lines
/// lack.
char separator_of(const std::string& path) {
  char best = ',';
  bool is_text = false;
  std::int64_t best_broken = kAnyNumber;
  std::size_t best_fields = 0;
  for (const char separator : {',', '\t', ';', '|'}) {
    std::size_t fields = 0;
    std::int64_t records = 0, broken = 0;
    try {
      fields = first_record(path, separator).size();
      const std::vector<std::string> columns = {"1"};
      CsvReader reader(std::span(&path, 1), {.separator = separator, .header = false}, columns,
                       kAnyNumber);
      read_some(reader, kTried, [&] { ++records; });
      broken = reader.left_out().total();
    } catch (const ValueError&) {  // the first line cannot be cut so
      continue;
    }
    const bool better = fields > 1 && (best_fields < 2 || broken < best_broken ||
                                       (broken == best_broken && fields > best_fields));
    if (!better) continue;
    best = separator;
    best_broken = broken;
    best_fields = fields;
    is_text = broken > records && records > 1;  // else the first line is not as the others
  }
  if (is_text && first_record(path, '\t').size() == 1) return '\t';
  return best_fields < 2 && has_numbers_between_blanks(path) ? ' ' : best;
}

void add(SeenColumn& column, std::string_view text) {
  if (text.empty()) {
    ++column.empty;
    return;
  }
  if (column.has_all()) column.distinct.emplace(text);
  std::int64_t integer = 0;
  double number = 0;
  const bool is_integer = parses(text, integer);
  if (is_integer || (parses(text, number) && std::isfinite(number))) {
    if (is_integer) number = static_cast<double>(integer);
    const bool first = column.integers + column.decimals == 0;
    column.lowest = first ? number : std::min(column.lowest, number);
    column.highest = first ? number : std::max(column.highest, number);
    column.whole &= number == std::floor(number);
    ++(is_integer ? column.integers : column.decimals);
  } else if (time_of(text)) {
    ++column.times;
  } else {
    ++column.texts;
  }
}

/// Tells whether the lines of a file are lists: see SeenFile::lists.
class ListLines {
 public:
  void add(std::string_view line) {
    if (!are_lists_) return;
    std::size_t keys = 0;
    for (std::size_t begin = 0, end = 0; begin < line.size(); begin = end + 1, ++keys) {
      end = std::min(line.find(' ', begin), line.size());
      std::int64_t key = 0;
      are_lists_ &= parses(line.substr(begin, end - begin), key);
      if (!are_lists_) return;
      if (keys == 0 && users_.size() < SeenColumn::kMostDistinct)
        are_lists_ &= users_.insert(key).second;
    }
    ++lines_;
    with_items_ += keys > 1;
  }

  /// Users without items are few: else the lines are a column of integers.
  bool are_lists() const noexcept { return are_lists_ && lines_ > 1 && 2 * with_items_ > lines_; }

 private:
  bool are_lists_ = true;
  std::int64_t lines_ = 0, with_items_ = 0;
  std::unordered_set<std::int64_t> users_;
};

}  // namespace

SeenFile look_at(const std::string& path, bool may_have_header) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::status(path, none);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    throw ValueError(fmt::format("'{}' must be a regular file: it is read several times", path));
  SeenFile seen;
  seen.format = {.separator = separator_of(path), .header = false};
  const std::vector<std::string> first = first_record(path, seen.format.separator);
  seen.format.trim = std::any_of(first.begin(), first.end(), [](const std::string& field) {
    return field.starts_with(' ') || field.ends_with(' ');
  });
  std::vector<std::string> numbers;
  for (std::size_t i = 1; i <= first.size(); ++i) numbers.push_back(std::to_string(i));
  seen.columns.resize(first.size());
  CsvReader reader(std::span(&path, 1), seen.format, numbers, kAnyNumber);
  bool is_header = may_have_header;
  std::vector<std::string> names;
  ListLines lines;
  seen.all = read_some(reader, SeenFile::kMostRecords + 1, [&] {
    const bool is_first = names.empty();
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (is_first) {
        names.emplace_back(reader.text(i));
        SeenColumn field;
        add(field, reader.text(i));
        is_header &= field.texts == 1;
      } else {
        add(seen.columns[i], reader.text(i));
      }
    }
    if (first.size() == 1) lines.add(reader.text(0));
    ++seen.records;
  });
  seen.lists = first.size() == 1 && lines.are_lists();
  is_header &= first.size() > 1 || seen.records == 1;  // lines of one column are text or lists
  for (std::size_t i = 0; i < names.size(); ++i)
    is_header &= seen.columns[i].distinct.count(names[i]) == 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_header) add(seen.columns[i], names[i]);
    const bool is_told =
        std::count(names.begin(), names.end(), names[i]) == 1 && !is_range(names[i]);
    seen.columns[i].name = is_header && is_told ? names[i] : numbers[i];
    if (is_header && !is_told) seen.columns[i].called = names[i];
  }
  if (is_header) --seen.records;
  seen.format.header = is_header;
  seen.broken = reader.left_out().total();
  if (seen.records < 1 && seen.broken > 0) {
    throw ValueError(fmt::format(
        "'{}' must have records with as many fields as its first line, {}, got none and {} others",
        path, names.size(), seen.broken));
  }
  if (seen.records < 1) throw ValueError(fmt::format("'{}' must have records, got none", path));
  return seen;
}

std::vector<double> greatest_shares(const std::string& path, const SeenFile& seen,
                                    std::span<const std::size_t> columns) {
  CsvFormat format = seen.format;
  format.header = false;  // columns are taken by their numbers, whatever names there are
  std::vector<std::string> numbers;
  for (const std::size_t column : columns) numbers.push_back(std::to_string(column + 1));
  CsvReader reader(std::span(&path, 1), format, numbers, kAnyNumber);
  std::vector<std::unordered_map<std::string, std::int64_t>> counts(columns.size());
  std::int64_t records = 0;
  bool is_header = seen.format.header;
  read_some(reader, SeenFile::kMostRecords + 1, [&] {
    if (std::exchange(is_header, false)) return;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (reader.text(i).empty()) return;
    ++records;
    for (std::size_t i = 0; i < columns.size(); ++i) ++counts[i][std::string(reader.text(i))];
  });
  std::vector<double> shares;
  for (const auto& of_column : counts) {
    std::int64_t most = 0;
    for (const auto& [_, count] : of_column) most = std::max(most, count);
    shares.push_back(records > 0 ? static_cast<double>(most) / static_cast<double>(records) : 0);
  }
  return shares;
}

}  // namespace embertable::jobs
