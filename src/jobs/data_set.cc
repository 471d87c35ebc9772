#include "jobs/data_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <span>

#include "base/hash.h"
#include "embertable/errors.h"
#include "jobs/csv_reader.h"

namespace embertable::jobs {
namespace {

std::int32_t add_key(const CsvReader& reader, std::size_t field, Vocabulary& keys) {
  return keys.kind() == KeyKind::kInteger ? keys.add(reader.integer(field))
                                          : keys.add(reader.text(field));
}

std::int32_t find_key(const CsvReader& reader, std::size_t field, const Vocabulary& keys) {
  return keys.kind() == KeyKind::kInteger ? keys.find(reader.integer(field))
                                          : keys.find(reader.text(field));
}

/// Appends the keys of a field as one list.
void add_list(const CsvReader& reader, std::size_t field, const IdsSpec& spec, IdColumn& column) {
  const auto before = static_cast<std::int64_t>(column.lists.ids.size());
  const auto add = [&](std::string_view text) {
    if (spec.keys == KeyKind::kString) {
      column.lists.ids.push_back(column.keys.add(text));
      return;
    }
    std::int64_t key = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), key);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      reader.refuse(field, fmt::format("a list of integers separated by '{}'", spec.separator));
    }
    column.lists.ids.push_back(column.keys.add(key));
  };
  if (spec.separator.empty()) {
    add(reader.text(field));
  } else {
    for_each_part(reader.text(field), spec.separator, add);
  }
  const auto after = static_cast<std::int64_t>(column.lists.ids.size());
  column.lists.splits.push_back(after);
  column.lists.longest = std::max(column.lists.longest, after - before);
}

std::string path_in(const std::string& root, const FileSpec& file) {
  return (std::filesystem::path(root) / file.path).string();
}

/// The columns of the data file that hold ids, and its labels and parts.
class SampleReader {
 public:
  SampleReader(const RecordsSpec& records, const std::string& path, DataSet& data)
      : records_(records), data_(data) {
    std::vector<std::string> columns;
    for (std::size_t i = 0; i < records.ids.size() && !records.ids[i].joined(); ++i)
      columns.push_back(records.ids[i].column);
    label_ = columns.size();
    columns.push_back(records.data.label);
    for (const IdColumn& column : data.columns) has_lists_ = has_lists_ || column.owner >= 0;
    for (const std::string& name : records.split.by) {
      split_.push_back(static_cast<std::size_t>(&named(records.ids, name) - records.ids.data()));
    }
    CsvReader reader(path, records.data.file.format, columns);
    while (reader.next()) read(reader);
  }

 private:
  void read(const CsvReader& reader) {
    for (std::size_t i = 0; i < label_; ++i) {
      IdColumn& column = data_.columns[i];
      if (column.cell >= 0) {
        data_.samples.cells.push_back(add_key(reader, i, column.keys));
      } else {
        add_list(reader, i, records_.ids[i], column);
      }
    }
    const std::size_t number = data_.part.size();
    if (has_lists_) data_.samples.cells.push_back(static_cast<std::int32_t>(number));
    const double label = reader.number(label_);
    if (!(label >= records_.data.lowest && label <= records_.data.highest)) {
      reader.refuse(label_, fmt::format("from {} to {}, the job's data.range", records_.data.lowest,
                                        records_.data.highest));
    }
    data_.samples.cells.push_back(std::bit_cast<std::int32_t>(static_cast<float>(label)));
    if (number == std::numeric_limits<std::int32_t>::max()) {
      throw ValueError("a data file must have fewer than 2^31 records, got one more");
    }
    data_.part.push_back(split_part(key(reader), records_.split.salt));
  }

  std::uint64_t key(const CsvReader& reader) const {
    if (split_.empty()) return data_.part.size();
    const std::int64_t first = reader.integer(split_[0]);
    return split_.size() == 1 ? static_cast<std::uint64_t>(first)
                              : pair_key(first, reader.integer(split_[1]));
  }

  const RecordsSpec& records_;
  DataSet& data_;
  std::size_t label_ = 0;
  bool has_lists_ = false;  ///< the sample's number stands in its last cell but one
  std::vector<std::size_t> split_;
};

/// One list for each key of the owner; a key without a record has none.
void read_joined(const IdsSpec& spec, const std::string& path, const Vocabulary& owner,
                 IdColumn& column) {
  const std::string columns[] = {spec.key, spec.column};
  CsvReader reader(path, spec.file.format, columns);
  std::vector<std::int64_t> record_of(static_cast<std::size_t>(owner.size()), -1);
  for (std::int64_t records = 0; reader.next();) {
    const std::int32_t id = find_key(reader, 0, owner);
    if (id < 0) continue;
    std::int64_t& record = record_of[static_cast<std::size_t>(id)];
    if (record >= 0) reader.refuse(0, "a key that stands in no other record");
    record = records++;
    add_list(reader, 1, spec, column);
  }
  const IdLists by_record = std::move(column.lists);
  column.lists = {};
  column.lists.longest = by_record.longest;
  column.lists.ids.reserve(by_record.ids.size());
  for (const std::int64_t record : record_of) {
    if (record < 0) {
      ++column.lists.without;
    } else {
      const auto begin = by_record.ids.begin() + by_record.splits[static_cast<std::size_t>(record)];
      const auto end =
          by_record.ids.begin() + by_record.splits[static_cast<std::size_t>(record) + 1];
      column.lists.ids.insert(column.lists.ids.end(), begin, end);
    }
    column.lists.splits.push_back(static_cast<std::int64_t>(column.lists.ids.size()));
  }
}

/// Numbers the keys of a column in rising order, wherever they stand.
void sort_keys(DataSet& data, IdColumn& column) {
  const std::vector<std::int32_t> new_id = column.keys.sort();
  for (std::int32_t& id : column.lists.ids) id = new_id[static_cast<std::size_t>(id)];
  if (column.cell < 0) return;
  std::vector<std::int32_t>& cells = data.samples.cells;
  for (auto i = static_cast<std::size_t>(column.cell); i < cells.size();
       i += static_cast<std::size_t>(data.samples.stride)) {
    cells[i] = new_id[static_cast<std::size_t>(cells[i])];
  }
}

/// Empty columns, and a sample's cells: ids, its number if there are lists by sample, its label.
DataSet make_columns(const RecordsSpec& records) {
  DataSet data;
  std::int32_t cells = 0;
  bool has_lists = false;
  for (const IdsSpec& spec : records.ids) {
    IdColumn& column =
        data.columns.emplace_back(IdColumn{.name = spec.name, .keys = Vocabulary(spec.keys)});
    if (spec.joined()) continue;
    if (spec.separator.empty()) {
      column.cell = cells++;
    } else {
      has_lists = true;
    }
  }
  for (std::size_t i = 0; i < records.ids.size(); ++i) {
    if (!records.ids[i].joined() && data.columns[i].cell < 0) data.columns[i].owner = cells;
  }
  data.samples.stride = cells + (has_lists ? 1 : 0) + 1;
  return data;
}

/// One cell of every sample, so that it does not matter which cell it is.
void hash_cell(const Samples& samples, std::int64_t cell, Hasher& hasher) {
  std::vector<std::int32_t> values;
  values.reserve(static_cast<std::size_t>(samples.size()));
  for (std::int64_t s = 0; s < samples.size(); ++s) values.push_back(samples.row(s)[cell]);
  hasher.update(std::as_bytes(std::span(values)));
}

}  // namespace

Samples DataSet::select(const std::vector<Part>& parts) const {
  bool wanted[3] = {};
  for (const Part one : parts) wanted[static_cast<std::size_t>(one)] = true;
  Samples chosen{.stride = samples.stride};
  for (std::int64_t i = 0; i < samples.size(); ++i) {
    if (!wanted[static_cast<std::size_t>(part[static_cast<std::size_t>(i)])]) continue;
    chosen.cells.insert(chosen.cells.end(), samples.row(i), samples.row(i) + samples.stride);
  }
  return chosen;
}

std::map<std::string, std::string> data_digests(const DataSet& data) {
  std::map<std::string, std::string> digests;
  Hasher samples;
  hash_cell(data.samples, data.samples.stride - 1, samples);
  samples.update(std::as_bytes(std::span(data.part)));
  digests["samples"] = samples.hex();
  for (const IdColumn& column : data.columns) {
    Hasher hasher;
    const std::string keys = column.keys.id_map().to_bytes();
    hasher.update(std::as_bytes(std::span(keys)));
    if (column.cell >= 0) hash_cell(data.samples, column.cell, hasher);
    hasher.update(std::as_bytes(std::span(column.lists.splits)));
    hasher.update(std::as_bytes(std::span(column.lists.ids)));
    digests["ids " + column.name] = hasher.hex();
  }
  return digests;
}

DataSet read_data(const RecordsSpec& records, const DataOptions& options) {
  const std::string& root = options.root;
  DataSet data = make_columns(records);
  const SampleReader filled(records, path_in(root, records.data.file), data);
  if (data.part.empty()) {
    throw ValueError(
        fmt::format("'{}' must have records, got none", path_in(root, records.data.file)));
  }
  for (std::size_t i = 0; i < records.ids.size(); ++i) {
    const IdsSpec& spec = records.ids[i];
    IdColumn& column = data.columns[i];
    // Owners stand before what is joined to them and have their final numbers.
    if (spec.joined()) {
      const IdColumn& owner = data.column(spec.of);
      column.owner = owner.cell;
      read_joined(spec, path_in(root, spec.file), owner.keys, column);
    }
    if (spec.order == KeyOrder::kSorted) sort_keys(data, column);
  }
  return data;
}

}  // namespace embertable::jobs
