#include "jobs/saved_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "checkpoint/reader.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "jobs/csv_reader.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kListedNames = 5;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

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

/// The part of a model's state that `save_model` writes. Throws DataLoss if it is something else.
nlohmann::json read_state(const std::filesystem::path& path, const CallerState& state) {
  const nlohmann::json json = nlohmann::json::parse(state.json, nullptr, false);
  if (!json.is_object() || !json.contains("ids") || !json["ids"].is_object()) {
    throw ValueError(fmt::format(
        "'{}' must be what `embertable train --out` saved, got a checkpoint without a job",
        path.string()));
  }
  return json;
}

const checkpoint::SavedTable& find_table(const checkpoint::Reader& reader,
                                         const std::string& name) {
  std::vector<std::string_view> names;
  for (const checkpoint::SavedTable& table : reader.manifest().tables) {
    if (table.name == name) return table;
    names.push_back(table.name);
  }
  throw KeyError(fmt::format("'{}' has no table '{}'; the nearest is '{}'",
                             reader.directory().string(), name, nearest_name(name, names)));
}

IdMap find_ids(const checkpoint::Reader& reader, const std::string& table) {
  const nlohmann::json state = read_state(reader.directory(), reader.caller_state());
  const auto ids = state["ids"].find(table);
  const std::map<std::string, std::string> maps = reader.id_maps();
  const auto map = ids != state["ids"].end() && ids->is_string()
                       ? maps.find(ids->get<std::string>())
                       : maps.end();
  if (map == maps.end()) {
    throw DataLoss(fmt::format("'{}': table '{}' must have an id map, got none",
                               reader.directory().string(), table));
  }
  return IdMap::from_bytes(map->second);
}

}  // namespace

std::filesystem::path save_model(const Embedding& engine, const Job& job, const DataSet& data,
                                 double mean, const std::string& data_root,
                                 const std::string& out) {
  nlohmann::ordered_json state = {{"job", job.name}, {"model", job.model.kind}, {"mean", mean}};
  for (const TableSpec& table : job.tables) state["ids"][table.name] = table.ids;
  CallerState caller;
  caller.json = state.dump();
  caller.blobs["job.toml"] = job.text;
  for (const NamesSpec& spec : job.names) {
    caller.blobs["names." + spec.ids] = read_names(spec, data.column(spec.ids).keys, data_root);
  }
  if (auto vectors = item_vectors(engine, job, data)) {
    caller.tensors["vectors." + named(job.features, job.model.item).table] = std::move(*vectors);
  }
  std::map<std::string, IdMap> maps;
  for (const IdColumn& column : data.columns) maps.emplace(column.name, column.keys.id_map());
  return engine.save(out, caller, maps);
}

SavedTableRows::SavedTableRows(const std::filesystem::path& path, const std::string& table)
    : name_(table), ids_(IdMap::hashed(KeyKind::kInteger, 1)) {
  const checkpoint::Reader reader(checkpoint::local_files(), path);
  const checkpoint::SavedTable& saved = find_table(reader, table);
  rows_ = saved.vocabulary_size;
  dim_ = saved.dim;
  values_.resize(static_cast<std::size_t>(rows_ * dim_));
  ids_ = find_ids(reader, table);
  const CallerState caller = reader.caller_state();
  const auto vectors = caller.tensors.find("vectors." + table);
  if (vectors == caller.tensors.end()) {
    reader.variable(table).read(0, values_);
  } else if (vectors->second.bytes.size() == values_.size() * sizeof(float)) {
    std::memcpy(values_.data(), vectors->second.bytes.data(), vectors->second.bytes.size());
  } else {
    throw DataLoss(fmt::format("'{}': tensor 'vectors.{}' must have {} floats, got {} bytes",
                               reader.directory().string(), table, values_.size(),
                               vectors->second.bytes.size()));
  }
  const nlohmann::json state = read_state(reader.directory(), caller);
  const auto blob = caller.blobs.find("names." + state["ids"][table].get<std::string>());
  if (blob == caller.blobs.end()) return;
  const nlohmann::json names = nlohmann::json::parse(blob->second, nullptr, false);
  for (const nlohmann::json& name : names)
    names_.push_back(name.is_string() ? name.get<std::string>() : "");
}

std::int64_t SavedTableRows::row_of_key(const std::string& key) const {
  std::optional<std::int64_t> row;
  if (ids_.kind() == KeyKind::kString) {
    row = ids_.find(std::string_view(key));
  } else {
    std::int64_t number = 0;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) {
      throw ValueError(fmt::format("table '{}': a key must be an integer, got '{}'", name_, key));
    }
    row = ids_.find(number);
  }
  if (!row) throw KeyError(fmt::format("table '{}' has no key '{}'", name_, key));
  return *row;
}

std::int64_t SavedTableRows::row_of_name(const std::string& text) const {
  if (names_.empty()) throw KeyError(fmt::format("table '{}' has no names; give a key", name_));
  const std::string wanted = lower(text);
  std::vector<std::int64_t> found;
  for (std::size_t row = 0; row < names_.size(); ++row) {
    const std::string name = lower(names_[row]);
    if (name == wanted) return static_cast<std::int64_t>(row);
    if (name.find(wanted) != std::string::npos) found.push_back(static_cast<std::int64_t>(row));
  }
  if (found.empty())
    throw KeyError(fmt::format("table '{}' has no name that contains '{}'", name_, text));
  if (found.size() > 1) {
    std::string listed;
    for (std::size_t i = 0; i < std::min(found.size(), kListedNames); ++i) {
      listed += fmt::format("\n  --key {:<8} {}", key(found[i]), display_name(found[i]));
    }
    throw ValueError(fmt::format(
        "table '{}': a name must be of one row, got '{}', which {} names contain:{}{}", name_, text,
        found.size(), listed, found.size() > kListedNames ? "\n  ..." : ""));
  }
  return found.front();
}

std::string SavedTableRows::key(std::int64_t row) const {
  if (row >= ids_.num_keys()) return "";
  return ids_.kind() == KeyKind::kInteger ? std::to_string(ids_.integer_key(row))
                                          : std::string(ids_.string_key(row));
}

const std::string& SavedTableRows::display_name(std::int64_t row) const noexcept {
  static const std::string kNone;
  return row < static_cast<std::int64_t>(names_.size()) ? names_[static_cast<std::size_t>(row)]
                                                        : kNone;
}

}  // namespace embertable::jobs
