#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "apps/jobs/data/data_cache.h"
#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/record_reader.h"
#include "apps/jobs/data/side_table.h"
#include "embertable/errors.h"

namespace embertable::jobs {

DataSet make_columns(const RecordsSpec& records) {
  DataSet data;
  std::int32_t cells = 0;
  bool has_lists = false;
  for (const IdsSpec& spec : records.ids) {
    IdColumn& column = data.columns.emplace_back();
    column.name = spec.name;
    if (spec.joined()) continue;
    if (!spec.rules.separator.empty()) {
      has_lists = true;
      continue;
    }
    column.cell = cells;
    column.width = static_cast<std::int32_t>(spec.columns.size());
    cells += column.width;
  }
  for (std::size_t i = 0; i < records.ids.size(); ++i) {
    if (!records.ids[i].joined() && data.columns[i].cell < 0) data.columns[i].owner = cells;
  }
  data.numbers = std::ssize(records.data.numbers);
  data.samples.stride = cells + (has_lists ? 1 : 0) + data.numbers * DataSet::kNumberCells + 1;
  return data;
}

namespace {

void read_samples(const RecordsSpec& records, const DataOptions& options, DataSet& data) {
  RecordReader reader(records, options.skip_bad.most(), data);
  reader.read(paths_in(options.root, records.data.file.paths), false);
  if (data.part.empty()) {
    throw ValueError(fmt::format("'{}' {}", paths_in(options.root, records.data.file.paths)[0],
                                 none_left(records.data.where, "records")));
  }
  if (!records.split.test_paths.empty())
    reader.read(paths_in(options.root, records.split.test_paths), true);
  reader.finish();
}

DataSet read_files(const RecordsSpec& records, const DataOptions& options) {
  DataSet data = make_columns(records);
  read_samples(records, options, data);
  for (std::size_t i = 0; i < records.ids.size(); ++i) {
    const IdsSpec& spec = records.ids[i];
    if (!spec.joined()) continue;
    // Owners are numbered before the columns that belong to them.
    const IdColumn& owner = data.column(spec.of);
    data.columns[i].owner = owner.cell;
    data.left_out +=
        read_side_table(spec, paths_in(options.root, spec.file.paths), owner.keys,
                        options.skip_bad.most() - data.left_out.total(), data.columns[i]);
  }
  return data;
}

std::string describe(const FileSpec& file, const std::string& root) {
  return describe(file.format) + " " + file_stamps(paths_in(root, file.paths));
}

std::string describe(const IdsSpec& ids, const std::string& root) {
  const KeyRules& rules = ids.rules;
  std::string text =
      fmt::format("{:?} {} {} {} {} {} {:?} {:?} {} {} {} {} {:?} {:?}\n", ids.name, ids.columns,
                  ids.written, ids.written_buckets, static_cast<int>(rules.kind),
                  static_cast<int>(rules.order), rules.separator, rules.missing, rules.by_column,
                  rules.min_count, rules.hash_rows, describe(ids.file, root), ids.key, ids.of);
  for (const IdsSpec::Limits& limits : ids.limits)
    text += fmt::format("limits {:?} {}\n", limits.column, limits.values);
  return text;
}

/// Describes everything that the data set depends on.
std::string describe(const RecordsSpec& records, const DataOptions& options) {
  const DataSpec& data = records.data;
  const SplitSpec& split = records.split;
  std::string text = fmt::format(
      "{}\n{} {} {} {} {} {}\n{} {} {} {} {}\n", describe(data.file, options.root), data.label,
      data.lowest, data.highest, data.binary, data.positive, data.negative, split.columns,
      split.salt, split.train_on_validation, split.validation_buckets, options.skip_bad.text());
  text += describe(data.where);
  if (!data.written_numbers.empty())
    text += fmt::format("numbers of binary64 {} {:?}\n", data.written_numbers, data.missing);
  if (!split.time.empty())
    text += fmt::format("time {:?} {} {}\n", split.time, split.test, split.validation);
  text += file_stamps(paths_in(options.root, split.test_paths));
  for (const IdsSpec& ids : records.ids) text += describe(ids, options.root);
  return text;
}

DataCache records_cache(const RecordsSpec& records, const DataOptions& options) {
  return DataCache(options.cache, "records", describe(records, options));
}

constexpr auto kFields = [](auto& file, DataSet& data) {
  file(data.samples.stride, data.samples.cells, data.part, data.numbers);
  data.left_out.fields(file);
  file.size(data.columns);
  for (IdColumn& column : data.columns) {
    file(column.name, column.keys, column.cell, column.width, column.owner, column.lists.splits,
         column.lists.ids, column.lists.longest, column.lists.without, column.empty);
  }
};

/// True if the ids of each sample are rows of its column, or select lists of such rows.
bool fits(const IdColumn& column, const Samples& samples) {
  const auto cells_are_below = [&](std::int64_t first, std::int64_t count, std::int64_t limit) {
    if (first < 0 || count < 1 || count >= samples.stride - first) return false;
    for (std::int64_t s = 0; s < samples.size(); ++s) {
      for (std::int64_t i = first; i < first + count; ++i)
        if (samples.row(s)[i] < 0 || samples.row(s)[i] >= limit) return false;
    }
    return true;
  };
  const IdLists& lists = column.lists;
  const std::int64_t rows = column.keys.num_rows(), count = std::ssize(lists.splits) - 1;
  if (count < 0 || !are_lists(lists.splits, lists.ids, count, rows)) return false;
  return column.cell >= 0 ? cells_are_below(column.cell, column.width, rows)
                          : cells_are_below(column.owner, 1, count);
}

/// True if the data set is as `read_files` could have made it.
bool fits(const DataSet& data, const RecordsSpec& records) {
  const Samples& samples = data.samples;
  const std::int64_t cells = std::ssize(samples.cells);
  return samples.stride >= 1 && cells % samples.stride == 0 &&
         data.numbers == std::ssize(records.data.numbers) && data.number_cell() >= 0 &&
         std::ssize(data.part) == samples.size() && data.columns.size() == records.ids.size() &&
         std::all_of(data.part.begin(), data.part.end(), is_part) &&
         std::equal(data.columns.begin(), data.columns.end(), records.ids.begin(),
                    [&](const IdColumn& column, const IdsSpec& ids) {
                      return column.name == ids.name && fits(column, samples);
                    });
}

}  // namespace

std::optional<DataSet> read_cached(const RecordsSpec& records, const DataOptions& options) {
  return records_cache(records, options).read<DataSet>(kFields, [&](const DataSet& data) {
    return fits(data, records);
  });
}

DataSet read_data(const RecordsSpec& records, const DataOptions& options) {
  return records_cache(records, options)
      .get<DataSet>([&] { return read_files(records, options); }, kFields,
                    [&](const DataSet& data) { return fits(data, records); });
}

}  // namespace embertable::jobs
