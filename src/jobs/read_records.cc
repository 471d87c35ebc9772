#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "embertable/errors.h"
#include "jobs/data_cache.h"
#include "jobs/data_set.h"
#include "jobs/record_reader.h"
#include "jobs/side_table.h"

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
  data.samples.stride = cells + (has_lists ? 1 : 0) + 1;
  return data;
}

namespace {

void read_samples(const RecordsSpec& records, const DataOptions& options, DataSet& data) {
  RecordReader reader(records, options.skip_bad, data);
  reader.read(paths_in(options.root, records.data.file.paths), false);
  if (data.part.empty()) {
    throw ValueError(fmt::format("'{}' must have records, got none",
                                 paths_in(options.root, records.data.file.paths)[0]));
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
    // Owners have their final numbers.
    const IdColumn& owner = data.column(spec.of);
    data.columns[i].owner = owner.cell;
    data.left_out += read_side_table(spec, paths_in(options.root, spec.file.paths), owner.keys,
                                     options.skip_bad - data.left_out, data.columns[i]);
  }
  return data;
}

}  // namespace

DataSet read_data(const RecordsSpec& records, const DataOptions& options) {
  if (options.cache.empty()) return read_files(records, options);
  const DataCache cache(records, options);
  if (std::optional<DataSet> cached = cache.read()) return std::move(*cached);
  DataSet data = read_files(records, options);
  cache.write(data);
  return data;
}

}  // namespace embertable::jobs
