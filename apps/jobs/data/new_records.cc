#include "apps/jobs/data/new_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apps/jobs/data/record_reader.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Returns the number of a column that is named by its number; else 0.
std::int64_t number_of_column(const std::string& column) {
  std::int64_t number = 0;
  const char* const last = column.data() + column.size();
  const auto parsed = std::from_chars(column.data(), last, number);
  return parsed.ec == std::errc() && parsed.ptr == last ? number : 0;
}

/// Returns the column's number in a file without the label's column.
std::string without_label(const std::string& column, const std::string& label) {
  const std::int64_t number = number_of_column(column);
  return number > number_of_column(label) ? std::to_string(number - 1) : column;
}

}  // namespace

ScoreCell key_cell(std::string_view key, bool integers) {
  std::int64_t number = 0;
  const char* const last = key.data() + key.size();
  if (!integers) return key;
  const auto parsed = std::from_chars(key.data(), last, number);
  return parsed.ec == std::errc() && parsed.ptr == last ? ScoreCell(number) : ScoreCell(key);
}

bool has_integer_keys(const IdsSpec& ids) noexcept {
  return ids.rules.kind == KeyKind::kInteger && !ids.rules.by_column;
}

NewRecords::NewRecords(const RecordsSpec& records, const std::map<std::string, IdMap>& ids,
                       const NewRows& rows)
    : records_(records),
      reader_(std::span(&rows.path, 1), records.data.file.format, columns_of(records, rows),
              rows.skip_bad.most()) {
  check_ranges(records, reader_.header(), rows.path);
  make_keys(ids);
  find_copied(rows);
}

std::vector<std::string> NewRecords::columns_of(const RecordsSpec& records, const NewRows& rows) {
  const bool header = records.data.file.format.header;
  if (!rows.has_label && header) {
    throw ValueError(
        fmt::format("'{}': {} must be of a job with header = false: a header shows whether the "
                    "label's column is there",
                    rows.path, rows.names.no_label));
  }
  std::vector<std::string> columns;
  for (const IdsSpec& spec : records.ids) {
    if (spec.joined()) continue;
    for (const std::string& column : spec.columns)
      columns.push_back(rows.has_label ? column : without_label(column, records.data.label));
  }
  for (const std::string& column : records.data.numbers)
    columns.push_back(rows.has_label ? column : without_label(column, records.data.label));
  columns.insert(columns.end(), rows.copy.begin(), rows.copy.end());
  return columns;
}

void NewRecords::find_copied(const NewRows& rows) {
  const auto add = [&](std::size_t place, bool integer) {
    const std::string& name = reader_.name(place);
    if (std::find(copied_columns_.begin(), copied_columns_.end(), name) != copied_columns_.end())
      return;
    copied_columns_.push_back(name);
    copied_places_.push_back(place);
    copied_integers_.push_back(integer);
  };
  struct IdsField {
    std::int64_t column;  ///< its number in the file
    std::size_t place;
    bool integer;
  };
  std::vector<IdsField> found;
  std::size_t place = 0;
  for (const IdsSpec& spec : records_.ids) {
    if (spec.joined()) continue;
    if (rows.copy_ids.value_or(false) && spec.one_a_sample()) {
      const std::vector<std::string>& header = reader_.header();
      const std::string& name = reader_.name(place);
      const auto named = std::find(header.begin(), header.end(), name);
      found.push_back({named == header.end() ? number_of_column(name) : named - header.begin() + 1,
                       place, has_integer_keys(spec)});
    }
    place += spec.columns.size();
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const IdsField& a, const IdsField& b) { return a.column < b.column; });
  for (const IdsField& one : found) add(one.place, one.integer);
  place += records_.data.numbers.size();
  for (std::size_t i = 0; i < rows.copy.size(); ++i) add(place + i, false);
}

ScoreCell NewRecords::copied(std::int64_t record, std::size_t column) const {
  return key_cell(copied_[static_cast<std::size_t>(record) * copied_columns_.size() + column],
                  copied_integers_[column]);
}

void NewRecords::make_keys(const std::map<std::string, IdMap>& ids) {
  std::size_t place = 0;
  for (const IdsSpec& spec : records_.ids) {
    if (spec.joined()) continue;
    const IdMap& known = ids.at(spec.name);
    std::vector<KeyField> fields;
    std::vector<std::string> names;
    for (const std::string& column : spec.columns) {
      names.push_back(records_.data.file.format.header ? reader_.name(place) : column);
      fields.push_back(spec.field(column, place++));
      if (spec.rules.by_column && spec.rules.min_count > 0 && !known.find(names.back())) {
        throw ValueError(
            fmt::format("ids '{}': a column must have a name that it had in training, got '{}'",
                        spec.name, names.back()));
      }
    }
    keys_.emplace_back(spec.rules, fields, names, known);
    counts_.unseen[spec.name] = 0;
  }
  number_place_ = place;
}

std::int64_t NewRecords::read(std::int64_t most, DataSet& data) {
  data.samples.cells.clear();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (data.columns[i].cell < 0) data.columns[i].lists = {};
  }
  lines_.clear();
  unseen_.clear();
  while (std::ssize(lines_) < most && reader_.next()) {
    try {
      push();
    } catch (const BrokenRecord&) {
      reader_.leave_out();
    }
    if (std::ssize(queued_) == FieldKeys::kQueue) number(data);
  }
  number(data);
  count_unseen(data);
  give_rows(data);
  counts_.left_out = reader_.left_out().total();
  return std::ssize(lines_);
}

/// Queues the whole record, or nothing.
void NewRecords::push() {
  std::size_t pushed = 0;
  const std::size_t numbers = numbers_.size();
  try {
    for (std::size_t i = 0; i < records_.data.numbers.size(); ++i)
      numbers_.push_back(number_in(reader_, number_place_ + i, records_.data.missing));
    for (; pushed < keys_.size(); ++pushed) keys_[pushed].push(reader_);
  } catch (const BrokenRecord&) {
    while (pushed > 0) keys_[--pushed].pop();
    numbers_.resize(numbers);
    throw;
  }
  std::size_t at = lines_.size() * copied_places_.size();
  if (copied_.size() < at + copied_places_.size()) copied_.resize(at + copied_places_.size());
  for (const std::size_t place : copied_places_) copied_[at++] = reader_.text(place);
  queued_.push_back(0);
  lines_.push_back(reader_.line());
}

/// Appends what is queued to the samples.
void NewRecords::number(DataSet& data) {
  if (queued_.empty()) return;
  Samples& samples = data.samples;
  const auto stride = static_cast<std::size_t>(samples.stride);
  const std::size_t begin = samples.cells.size();
  samples.cells.resize(begin + queued_.size() * stride);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    IdColumn& column = data.columns[i];
    if (column.cell >= 0) {
      keys_[i].number(queued_, samples.cells.data() + begin + column.cell, samples.stride);
      continue;
    }
    keys_[i].number_lists(queued_, column.lists.ids, column.lists.splits);
    for (std::size_t r = 0; r < queued_.size(); ++r) {
      samples.cells[begin + r * stride + static_cast<std::size_t>(column.owner)] =
          static_cast<std::int32_t>(begin / stride + r);
    }
  }
  put_numbers(numbers_, static_cast<std::int64_t>(begin / stride), data);
  numbers_.clear();
  queued_.clear();
}

/// Counts numbers below 0, which are keys without a row of their own.
void NewRecords::count_unseen(const DataSet& data) {
  unseen_.assign(lines_.size(), 0);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const IdColumn& column = data.columns[i];
    std::int64_t& of_ids = counts_.unseen[column.name];
    for (std::size_t r = 0; r < lines_.size(); ++r) {
      const std::int32_t* const begin =
          column.cell >= 0 ? data.samples.row(static_cast<std::int64_t>(r)) + column.cell
                           : column.lists.ids.data() + column.lists.splits[r];
      const std::int64_t size =
          column.cell >= 0 ? column.width : column.lists.splits[r + 1] - column.lists.splits[r];
      const std::int64_t unseen =
          std::count_if(begin, begin + size, [](std::int32_t number) { return number < 0; });
      unseen_[r] += unseen;
      of_ids += unseen;
    }
  }
  counts_.rows += std::ssize(lines_);
  counts_.with_unseen +=
      std::count_if(unseen_.begin(), unseen_.end(), [](std::int64_t unseen) { return unseen > 0; });
}

/// Gives keys without a row of their own the row of rare keys, if there is one.
void NewRecords::give_rows(DataSet& data) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    IdColumn& column = data.columns[i];
    if (column.cell < 0) {
      finish_lists(keys_[i], column.lists);
      continue;
    }
    std::int64_t at = column.cell;
    for (std::size_t r = 0; r < lines_.size(); ++r, at += data.samples.stride) {
      std::int32_t* const cells = data.samples.cells.data() + at;
      for (std::size_t f = 0; f < keys_[i].width(); ++f) cells[f] = keys_[i].row(cells[f], f);
    }
  }
}

}  // namespace embertable::jobs
