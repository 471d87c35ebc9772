#include "apps/jobs/data/record_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "apps/jobs/text/field_rule.h"
#include "embertable/errors.h"
#include "input/key_index.h"

namespace embertable::jobs {
namespace {

/// Number of other texts of the label's column that a message shows.
constexpr std::size_t kMostOthers = 4;

/// Returns the place of the text, or the number of texts.
std::size_t place_of(const std::vector<std::string>& texts, std::string_view text) {
  return static_cast<std::size_t>(std::find(texts.begin(), texts.end(), text) - texts.begin());
}

bool has(const std::vector<std::string>& texts, std::string_view text) {
  return place_of(texts, text) < texts.size();
}

/// Returns the key of a text: an integer is its own key, other texts are hashed.
std::int64_t split_number(std::string_view text) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return value;
  return static_cast<std::int64_t>(input::hash_of(text));
}

/// Drops unknown keys, which have no row, from lists.
void drop_unknown(IdLists& lists) {
  std::size_t kept = 0;
  std::size_t next = 0;
  for (std::size_t list = 1; list < lists.splits.size(); ++list) {
    for (; next < static_cast<std::size_t>(lists.splits[list]); ++next) {
      if (lists.ids[next] >= 0) lists.ids[kept++] = lists.ids[next];
    }
    lists.splits[list] = static_cast<std::int64_t>(kept);
  }
  lists.ids.resize(kept);
}

}  // namespace

RecordReader::RecordReader(const RecordsSpec& records, std::int64_t skip_bad, DataSet& data)
    : records_(records), skip_bad_(skip_bad), data_(data), columns_{records.data.label} {
  for (; ids_ < records.ids.size() && !records.ids[ids_].joined(); ++ids_) {
    const std::vector<std::string>& columns = records.ids[ids_].columns;
    columns_.insert(columns_.end(), columns.begin(), columns.end());
  }
  where_ = columns_.size();
  for (const FieldRule& rule : records.data.where) columns_.push_back(rule.column);
  numbers_ = columns_.size();
  columns_.insert(columns_.end(), records.data.numbers.begin(), records.data.numbers.end());
  time_ = columns_.size();
  if (!records.split.time.empty()) columns_.push_back(records.split.time);
  columns_.insert(columns_.end(), records.split.columns.begin(), records.split.columns.end());
  seen_.resize(records.data.positive.size() + records.data.negative.size());
}

/// Refuses a label that the model would see: it would predict what it is told.
void RecordReader::check_label(const CsvReader& reader, const std::string& path) const {
  const auto check = [&](std::size_t place, const std::string& key) {
    if (!reader.is_same(place, 0)) return;
    throw ValueError(fmt::format("'{}': {} must not have the label's column '{}', got \"{}\"", path,
                                 key, records_.data.label, columns_[place]));
  };
  std::size_t place = 1;
  for (std::size_t i = 0; i < ids_; ++i) {
    const IdsSpec& ids = records_.ids[i];
    for (std::size_t c = 0; c < ids.columns.size(); ++c, ++place)
      check(place, fmt::format("ids.{}.{}", ids.name, ids.rules.by_column ? "columns" : "column"));
  }
  for (place = numbers_; place < time_; ++place) check(place, "data.numbers");
}

void RecordReader::make_keys(const CsvReader& reader) {
  std::size_t place = 1;
  for (std::size_t i = 0; i < ids_; ++i) {
    const IdsSpec& spec = records_.ids[i];
    std::vector<KeyField> fields;
    std::vector<std::string> names;
    for (const std::string& column : spec.columns) {
      names.push_back(reader.name(place));
      if (spec.rules.by_column && names.back().find('=') != std::string::npos) {
        throw ValueError(fmt::format("ids '{}': a column's name must have no '=', got '{}'",
                                     spec.name, names.back()));
      }
      fields.push_back(spec.field(column, place++));
    }
    keys_.emplace_back(spec.rules, fields, names);
  }
}

void RecordReader::read(const std::vector<std::string>& paths, bool tests) {
  CsvReader reader(paths, records_.data.file.format, columns_, skip_bad_ - data_.left_out.total());
  if (keys_.empty()) {
    check_ranges(records_, reader.header(), paths.front());
    check_label(reader, paths.front());
    make_keys(reader);
  }
  while (reader.next()) {
    try {
      if (hold(records_.data.where, reader, where_)) push(reader, tests);
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
    if (std::ssize(trains_) == FieldKeys::kQueue) number();
  }
  number();
  data_.left_out += reader.left_out();
}

/// Queues the whole record, or nothing.
void RecordReader::push(const CsvReader& reader, bool tests) {
  if (data_.part.size() == std::numeric_limits<std::int32_t>::max())
    throw ValueError("a data file must have fewer than 2^31 records, got one more");
  const float value = label(reader);
  const Part of = part(reader, tests);
  const bool dealt = records_.split.time.empty();
  const std::int64_t time = dealt ? 0 : time_fields_.read(reader, time_);
  std::size_t pushed = 0;
  const std::size_t numbers = queued_numbers_.size();
  try {
    read_numbers(reader);
    for (; pushed < keys_.size(); ++pushed) keys_[pushed].push(reader);
  } catch (const BrokenRecord&) {
    while (pushed > 0) keys_[--pushed].pop();
    queued_numbers_.resize(numbers);
    throw;
  }
  labels_.push_back(value);
  count_empty(reader);
  if (!dealt) times_.push_back(time);
  trains_.push_back(dealt && trains(of));
  data_.part.push_back(of);
}

bool RecordReader::trains(Part part) const noexcept {
  return part == Part::kTraining ||
         (part == Part::kValidation && records_.split.train_on_validation);
}

/// Queues the numbers of a record.
void RecordReader::read_numbers(const CsvReader& reader) {
  for (std::size_t i = 0; i < records_.data.numbers.size(); ++i)
    queued_numbers_.push_back(number_in(reader, numbers_ + i, records_.data.missing));
}

/// Deals the records to parts by their times. Keys were numbered before it was known which of them
/// are in records that train.
void RecordReader::deal_by_time() {
  const SplitSpec& split = records_.split;
  std::vector<std::int32_t> order(times_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return times_[a] < times_[b]; });
  const auto share = [&](double of_all) {
    return static_cast<std::int64_t>(of_all * static_cast<double>(order.size()));
  };
  const std::int64_t test = std::ssize(order) - share(split.test);
  const std::int64_t validation = test - share(split.validation);
  for (std::int64_t i = 0; i < std::ssize(order); ++i) {
    data_.part[order[i]] = i >= test         ? Part::kTest
                           : i >= validation ? Part::kValidation
                                             : Part::kTraining;
  }
  const Samples& samples = data_.samples;
  for (std::size_t i = 0; i < ids_; ++i) {
    const IdColumn& column = data_.columns[i];
    for (std::int64_t s = 0; s < samples.size(); ++s) {
      if (!trains(data_.part[s])) continue;
      if (column.cell >= 0) {
        for (std::int32_t k = 0; k < column.width; ++k)
          keys_[i].see(samples.id(s, column.cell + k));
      } else {
        for (auto k = column.lists.splits[s]; k < column.lists.splits[s + 1]; ++k)
          keys_[i].see(column.lists.ids[k]);
      }
    }
  }
}

/// Counts empty keys, where a field is one key.
void RecordReader::count_empty(const CsvReader& reader) {
  std::size_t place = 1;
  for (std::size_t i = 0; i < ids_; ++i) {
    const IdsSpec& spec = records_.ids[i];
    if (spec.one_a_sample()) {
      const std::string_view text = reader.text(place);
      if (text.empty() || text == spec.rules.missing) ++data_.columns[i].empty;
    }
    place += spec.columns.size();
  }
}

void RecordReader::check_label_texts() const {
  const DataSpec& data = records_.data;
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i] != 0) continue;
    const bool positive = i < data.positive.size();
    throw ValueError(fmt::format(
        "data.{} must name texts of the column '{}', got \"{}\", which it never has{}",
        positive ? "positive" : "negative", data.label,
        positive ? data.positive[i] : data.negative[i - data.positive.size()],
        others_.empty() ? "" : fmt::format("; it has \"{}\"", fmt::join(others_, "\", \""))));
  }
  if (!data.has_texts() || has_zeros_ == has_ones_ || data_.part.size() < 2) return;
  std::vector<std::string> texts = has_ones_ ? data.positive : data.negative;
  texts.insert(texts.end(), others_.begin(), others_.end());
  throw ValueError(fmt::format(
      "the labels of column '{}' must differ, got {} in all {} records: the column has only \"{}\"",
      data.label, has_ones_ ? 1 : 0, data_.part.size(), fmt::join(texts, "\", \"")));
}

float RecordReader::label(const CsvReader& reader) {
  const DataSpec& data = records_.data;
  if (data.has_texts()) {
    const std::string_view text = reader.text(0);
    if (const std::size_t i = place_of(data.positive, text); i < data.positive.size()) {
      seen_[i] = 1;
      has_ones_ = true;
      return 1;
    }
    if (const std::size_t i = place_of(data.negative, text); i < data.negative.size()) {
      seen_[data.positive.size() + i] = 1;
      has_zeros_ = true;
      return 0;
    }
    if (others_.size() < kMostOthers && !has(others_, text))
      others_.emplace_back(text.substr(0, kShownBytes));
    if (!data.positive.empty() && !data.negative.empty())
      reader.refuse(0, "one of the texts of data.positive and data.negative");
    (data.positive.empty() ? has_ones_ : has_zeros_) = true;
    return data.positive.empty() ? 1.0f : 0.0f;
  }
  const double label = reader.number(0);
  if (!(label >= data.lowest && label <= data.highest)) {
    reader.refuse(0, fmt::format("from {} to {}, the job's data.range", data.lowest, data.highest));
  }
  if (data.binary && label != 0 && label != 1) reader.refuse(0, "0 or 1");
  return static_cast<float>(label);
}

Part RecordReader::part(const CsvReader& reader, bool tests) const {
  if (tests) return Part::kTest;
  const SplitSpec& split = records_.split;
  if (!split.time.empty()) return Part::kTraining;
  if (split.test_paths.empty()) return split_part(split_key(reader), split.salt);
  return split_bucket(split_key(reader), split.salt) < split.validation_buckets ? Part::kValidation
                                                                                : Part::kTraining;
}

std::uint64_t RecordReader::split_key(const CsvReader& reader) const {
  const std::size_t columns = records_.split.columns.size();
  if (columns == 0) return data_.part.size();
  const std::size_t place = columns_.size() - columns;
  const std::int64_t first = split_number(reader.text(place));
  return columns == 1 ? static_cast<std::uint64_t>(first)
                      : pair_key(first, split_number(reader.text(place + 1)));
}

/// Appends what is queued to the samples.
void RecordReader::number() {
  if (trains_.empty()) return;
  Samples& samples = data_.samples;
  const auto stride = static_cast<std::size_t>(samples.stride);
  const std::size_t begin = samples.cells.size();
  const std::size_t first = begin / stride;
  samples.cells.resize(begin + trains_.size() * stride);
  for (std::size_t i = 0; i < ids_; ++i) {
    IdColumn& column = data_.columns[i];
    if (column.cell >= 0) {
      keys_[i].number(trains_, samples.cells.data() + begin + column.cell, samples.stride);
    } else {
      keys_[i].number_lists(trains_, column.lists.ids, column.lists.splits);
      for (std::size_t r = 0; r < trains_.size(); ++r) {
        samples.cells[begin + r * stride + static_cast<std::size_t>(column.owner)] =
            static_cast<std::int32_t>(first + r);
      }
    }
  }
  for (std::size_t r = 0; r < labels_.size(); ++r)
    samples.cells[begin + (r + 1) * stride - 1] = std::bit_cast<std::int32_t>(labels_[r]);
  put_numbers(queued_numbers_, static_cast<std::int64_t>(first), data_);
  queued_numbers_.clear();
  labels_.clear();
  trains_.clear();
}

void RecordReader::finish() {
  check_label_texts();
  if (!records_.split.time.empty()) deal_by_time();
  for (std::size_t i = 0; i < ids_; ++i) {
    keys_[i].finish();
    give_rows(keys_[i], data_.columns[i]);
    data_.columns[i].keys = std::move(keys_[i]).take();
  }
}

void RecordReader::give_rows(const FieldKeys& keys, IdColumn& column) {
  if (column.cell < 0) return finish_lists(keys, column.lists);
  if (!keys.renumbers()) return;
  std::int32_t* cells = data_.samples.cells.data() + column.cell;
  for (std::int64_t s = 0; s < data_.samples.size(); ++s, cells += data_.samples.stride) {
    for (std::size_t f = 0; f < keys.width(); ++f) cells[f] = keys.row(cells[f], f);
  }
}

double number_in(const CsvReader& reader, std::size_t field, std::string_view missing) {
  const std::string_view text = reader.text(field);
  if (text.empty() || text == missing) return std::numeric_limits<double>::quiet_NaN();
  const double number = reader.number(field);
  if (!std::isfinite(static_cast<float>(number))) reader.refuse(field, "a number of binary32");
  return number;
}

void put_numbers(std::span<const double> numbers, std::int64_t first, DataSet& data) {
  Samples& samples = data.samples;
  for (std::int64_t i = 0; i < std::ssize(numbers); ++i) {
    const std::int64_t sample = (first + i / data.numbers) * samples.stride;
    std::memcpy(samples.cells.data() + sample + data.number_cell(i % data.numbers), &numbers[i],
                sizeof(double));
  }
}

void finish_lists(const FieldKeys& keys, IdLists& lists) {
  for (std::int32_t& id : lists.ids) id = keys.row(id, 0);
  drop_unknown(lists);
  for (std::size_t list = 1; list < lists.splits.size(); ++list)
    lists.longest = std::max(lists.longest, lists.splits[list] - lists.splits[list - 1]);
}

}  // namespace embertable::jobs
