#include "serving/served.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "serving/lookup.h"
#include "table/placement.h"

namespace embertable::serving {
namespace {

using checkpoint::FileKind;
using checkpoint::Manifest;
using checkpoint::Reader;
using checkpoint::SavedTable;

std::int64_t index_of(const Manifest& manifest, const std::string& name) {
  const auto found = std::ranges::find(manifest.tables, name, &SavedTable::name);
  return found == manifest.tables.end() ? -1 : found - manifest.tables.begin();
}

const SavedTable& at(const Manifest& manifest, std::int64_t table) {
  return manifest.tables[static_cast<std::size_t>(table)];
}

/// "" if the shapes are one, else both of them.
std::string broken_shape(const SavedTable& saved, const TableConfig& config) {
  const Shape theirs{saved.vocabulary_size, saved.dim}, ours{config.vocabulary_size, config.dim};
  if (theirs == ours) return "";
  return " (" + theirs.to_string() + " saved, " + ours.to_string() + " here)";
}

bool is_chosen(const RestoreOptions& options, const std::string& table) {
  return options.tables.empty() || std::ranges::find(options.tables, table) != options.tables.end();
}

std::map<std::string, IdMap> id_maps_of(const Reader& reader) {
  std::map<std::string, IdMap> maps;
  for (const auto& [name, bytes] : reader.id_maps()) maps.emplace(name, IdMap::from_bytes(bytes));
  return maps;
}

}  // namespace

Served::Served(checkpoint::FileSystem& files, Nested<FeatureConfig> features,
               const std::vector<TablePtr>& tables, ServingOptions options)
    : files_(files),
      features_(std::move(features)),
      options_(std::move(options)),
      list_(list_tables(features_, tables)),
      executor_(options_.executor ? options_.executor : make_inline_executor()),
      tables_(list_.tables.size()),
      viewed_(list_.tables.size()) {}

std::unique_ptr<Served> Served::open_all(checkpoint::FileSystem& files,
                                         const std::filesystem::path& path,
                                         ServingOptions options) {
  Reader reader(files, path);
  SavedFeatures saved = features_of(reader.manifest());
  auto served =
      std::make_unique<Served>(files, std::move(saved.features), saved.tables, std::move(options));
  served->open(std::move(reader), {});
  return served;
}

Served::TableHandle Served::initialized(const ListedTable& table) const {
  Shard shard(Placement(table.config.vocabulary_size, 1, Sharding::kDiv), 0, table.config.dim, {});
  shard.initialize(-1, *table.config.initializer, stream_of(options_.seed, table.name()),
                   *executor_);
  return std::make_shared<const ServedTable>(std::move(shard));
}

Served::TableHandle Served::opened(const Reader& reader, std::int64_t table) const {
  std::vector<ServedTable::Part> parts;
  for (const checkpoint::FileRecord& record : reader.manifest().files) {
    if (record.kind != FileKind::kTable || record.table != table) continue;
    parts.push_back({std::make_shared<checkpoint::MappedFile>(files_, reader.directory(), record),
                     record.tensors.front().offset, record.rows});
  }
  const SavedTable& saved = at(reader.manifest(), table);
  auto mapped = std::make_shared<const ServedTable>(
      saved.vocabulary_size, saved.dim, std::move(parts), options_.checks != Checks::kNone);
  if (options_.tables == OpenTables::kLoad) return mapped->copied(*executor_);
  if (options_.checks == Checks::kFull) mapped->check_all(*executor_);
  return mapped;
}

RestoreReport Served::restore(const std::filesystem::path& path, const RestoreOptions& options) {
  const Reader reader(files_, path);
  CallerState caller = reader.caller_state();
  std::map<std::string, IdMap> id_maps = id_maps_of(reader);
  RestoreReport report = open(reader, options);
  report.caller = std::move(caller);
  report.id_maps = std::move(id_maps);
  return report;
}

/// What a restore would do, and its report without caller and id_maps.
struct Served::Plan {
  std::vector<std::int64_t> saved;  ///< by table: index in the manifest, -1: not restored
  RestoreReport report;
};

Served::Plan Served::plan(const Reader& reader, const RestoreOptions& options) const {
  const Manifest& manifest = reader.manifest();
  Plan plan{std::vector<std::int64_t>(tables_.size(), -1),
            {.step = manifest.step, .directory = reader.directory()}};
  std::set<std::int64_t> read;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const ListedTable& table = list_.tables[t];
    const std::int64_t saved = index_of(manifest, table.name());
    if (saved >= 0) read.insert(saved);
    if (!is_chosen(options, table.name())) continue;
    if (saved < 0) {
      plan.report.missing.push_back(table.name());
    } else if (const std::string both = broken_shape(at(manifest, saved), table.config);
               !both.empty()) {
      plan.report.mismatched.push_back(table.name() + both);
    } else {
      plan.saved[t] = saved;
    }
  }
  for (std::size_t saved = 0; saved < manifest.tables.size(); ++saved) {
    const SavedTable& table = manifest.tables[saved];
    if (!is_chosen(options, table.name)) continue;
    if (!read.contains(static_cast<std::int64_t>(saved))) plan.report.extra.push_back(table.name);
    for (const checkpoint::SavedSlot& slot : table.slots)
      plan.report.extra.push_back(checkpoint::variable_name(table.name, slot.name));
  }
  return plan;
}

void Served::check(const Plan& plan, const Reader& reader, const RestoreOptions& options) const {
  for (const std::string& name : options.tables) {
    find(name);
    if (index_of(reader.manifest(), name) < 0)
      throw KeyError(reader.directory().string() + ": there is no table '" + name + "'");
  }
  std::string wrong;
  const auto add = [&](const std::string& text) { wrong += (wrong.empty() ? "" : ", ") + text; };
  for (const std::string& name : plan.report.missing) add(name + " (missing)");
  for (const std::string& text : plan.report.mismatched) add(text);
  const bool none = std::ranges::all_of(plan.saved, [](std::int64_t t) { return t < 0; });
  if ((!options.partial && !wrong.empty()) || (none && !tables_.empty()))
    throw ValueError(reader.directory().string() +
                     ": its tables must be those of the features, but for " + wrong);
}

RestoreReport Served::open(Reader reader, const RestoreOptions& options) {
  Plan plan = this->plan(reader, options);
  check(plan, reader, options);
  std::vector<TableHandle> tables = tables_;
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (plan.saved[t] >= 0) tables[t] = opened(reader, plan.saved[t]);
  use(std::move(tables));
  if (options.tables.empty() || !reader_) reader_.emplace(std::move(reader));
  return std::move(plan.report);
}

void Served::use(std::vector<TableHandle> tables) {
  const bool all = std::ranges::all_of(tables, [](const TableHandle& t) { return t != nullptr; });
  std::vector<Rows> rows;
  if (all)
    for (const std::int64_t table : list_.table_of)
      rows.push_back(tables[static_cast<std::size_t>(table)]->rows());
  tables_ = std::move(tables);
  rows_ = std::move(rows);
  viewed_.assign(tables_.size(), nullptr);
  built_.store(all, std::memory_order_release);
}

void Served::build() {
  if (built()) return;
  const std::lock_guard lock(building_);
  if (built()) return;
  std::vector<TableHandle> tables = tables_;
  for (std::size_t t = 0; t < tables.size(); ++t)
    if (!tables[t]) tables[t] = initialized(list_.tables[t]);
  use(std::move(tables));
}

std::map<TablePtr, TableView> Served::table_views() {
  build();
  const std::lock_guard lock(building_);
  std::map<TablePtr, TableView> views;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (!viewed_[t]) {
      const bool check = options_.checks != Checks::kNone;
      if (check) tables_[t]->check_all(*executor_);
      viewed_[t] = tables_[t]->is_one_block() ? tables_[t] : tables_[t]->copied(*executor_);
    }
    views[list_.tables[t].identity] = viewed_[t]->view();
  }
  return views;
}

void Served::look_up(const Batch& inputs, LookupOutput& output) {
  build();
  Lookup::run(
      inputs, features_,
      [&](std::int64_t feature) -> const Rows& { return rows_[static_cast<std::size_t>(feature)]; },
      level_, output);
}

std::size_t Served::find(std::string_view table) const {
  std::vector<std::string_view> names;
  for (const ListedTable& listed : list_.tables) {
    if (listed.name() == table) return names.size();
    names.push_back(listed.name());
  }
  throw KeyError("there is no table '" + std::string(table) + "'" +
                 (names.empty() ? ""
                                : "; the nearest is '" +
                                      std::string(nearest_name(std::string(table), names)) + "'"));
}

void Served::read_rows(std::string_view name, IntegerSpan rows, std::span<float> out) {
  build();
  const ServedTable& table = *tables_[find(name)];
  const std::string subject = "table '" + std::string(name) + "': ";
  if (std::ssize(out) != rows.size() * table.dim())
    throw ValueError(subject + std::to_string(rows.size()) + " rows of " +
                     std::to_string(table.dim()) + " floats need " +
                     std::to_string(rows.size() * table.dim()) + ", got " +
                     std::to_string(out.size()));
  std::vector<std::uint64_t> ids;
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= table.num_rows())
      throw IndexError(subject + "row must be 0 <= row < " + std::to_string(table.num_rows()) +
                       ", got " + std::to_string(rows[i]) + " at position " + std::to_string(i));
    ids.push_back(static_cast<std::uint64_t>(rows[i]));
  }
  table.copy(ids, out.data(), table.dim());
}

std::vector<TableInfo> Served::tables() const {
  std::vector<TableInfo> all;
  for (const ListedTable& table : list_.tables)
    all.push_back({table.name(),
                   table.config.vocabulary_size,
                   table.config.dim,
                   table.config.combiner,
                   "",
                   {}});
  return all;
}

CallerState Served::caller_state() const {
  return reader_ ? reader_->caller_state() : CallerState();
}

std::map<std::string, IdMap> Served::id_maps() const {
  return reader_ ? id_maps_of(*reader_) : std::map<std::string, IdMap>();
}

}  // namespace embertable::serving
