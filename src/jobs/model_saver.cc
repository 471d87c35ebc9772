#include "jobs/model_saver.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "jobs/csv_reader.h"

namespace embertable::jobs {
namespace {

/// A JSON list of the names by row.
std::string read_names(const NamesSpec& spec, const Vocabulary& keys,
                       const std::string& data_root) {
  const std::string columns[] = {spec.key, spec.name};
  CsvReader reader((std::filesystem::path(data_root) / spec.file.path).string(), spec.file.format,
                   columns);
  nlohmann::json names = nlohmann::json::array();
  for (std::int32_t i = 0; i < keys.size(); ++i) names.push_back(nullptr);
  while (reader.next()) {
    const std::int32_t id =
        keys.kind() == KeyKind::kInteger ? keys.find(reader.integer(0)) : keys.find(reader.text(0));
    if (id >= 0) names[static_cast<std::size_t>(id)] = reader.text(1);
  }
  return names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<float> all_rows(const Embedding& engine, const std::string& table, std::int32_t rows,
                            std::int32_t dim) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> values(ids.size() * static_cast<std::size_t>(dim));
  engine.read_rows(table, ids, values);
  return values;
}

/// What a list of `size` ids divides the sum of its rows by.
double denominator(Combiner combiner, double size) {
  return combiner == Combiner::kSum ? 1 : combiner == Combiner::kMean ? size : std::sqrt(size);
}

/// Adds to each item's row the pooled rows of its list.
void add_side(const Embedding& engine, const TableSpec& table, const IdColumn& column,
              std::vector<float>& items) {
  const std::vector<float> rows = all_rows(engine, table.name, column.keys.size(), table.dim);
  const auto dim = static_cast<std::size_t>(table.dim);
  std::vector<double> sum(dim);
  for (std::size_t item = 0; item + 1 < column.lists.splits.size(); ++item) {
    const auto begin = static_cast<std::size_t>(column.lists.splits[item]);
    const auto end = static_cast<std::size_t>(column.lists.splits[item + 1]);
    std::fill(sum.begin(), sum.end(), 0);
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t k = 0; k < dim; ++k)
        sum[k] += rows[static_cast<std::size_t>(column.lists.ids[i]) * dim + k];
    }
    if (begin == end) continue;
    const double divisor = denominator(table.combiner, static_cast<double>(end - begin));
    for (std::size_t k = 0; k < dim; ++k)
      items[item * dim + k] += static_cast<float>(sum[k] / divisor);
  }
}

/// What the model holds against a user's row: an item's row and its sides that are joined to it.
/// Nothing without such sides.
std::optional<DenseTensor> item_vectors(const Embedding& engine, const Job& job,
                                        const DataSet& data) {
  const auto table_of = [&](const std::string& feature) -> const TableSpec& {
    return named(job.tables, named(job.features, feature).table);
  };
  const TableSpec& table = table_of(job.model.item);
  const IdColumn& items = data.column(table.ids);
  std::vector<float> vectors;
  for (const std::string& side : job.model.sides) {
    const IdColumn& column = data.column(table_of(side).ids);
    if (column.owner != items.cell) continue;
    if (vectors.empty()) vectors = all_rows(engine, table.name, items.keys.size(), table.dim);
    add_side(engine, table_of(side), column, vectors);
  }
  if (vectors.empty()) return {};
  DenseTensor tensor{.dtype = "F32", .shape = {items.keys.size(), table.dim}, .bytes = {}};
  tensor.bytes.assign(reinterpret_cast<const char*>(vectors.data()),
                      vectors.size() * sizeof(float));
  return tensor;
}

}  // namespace

ModelSaver::ModelSaver(const Job& job, const DataSet& data, double mean,
                       const std::string& data_root)
    : job_(job), data_(data), mean_(mean), digests_(data_digests(data)) {
  blobs_["job.toml"] = job.text;
  for (const NamesSpec& spec : job.names)
    blobs_["names." + spec.ids] = read_names(spec, data.column(spec.ids).keys, data_root);
  for (const IdColumn& column : data.columns) id_maps_.emplace(column.name, column.keys.id_map());
}

std::filesystem::path ModelSaver::save(CheckpointRun& run, const Embedding& engine,
                                       const Progress& progress) const {
  CallerState caller;
  caller.json = run_state(job_, mean_, progress, digests_).dump();
  caller.blobs = blobs_;
  for (const auto& [feature, tensor] : progress.looked_up)
    caller.tensors["looked_up." + feature] = tensor;
  if (auto vectors = item_vectors(engine, job_, data_))
    caller.tensors["vectors." + named(job_.features, job_.model.item).table] = std::move(*vectors);
  std::filesystem::path saved = engine.save(run, caller, id_maps_);
  if (job_.checkpoint.keep > 0) run.keep(job_.checkpoint.keep);
  return saved;
}

}  // namespace embertable::jobs
