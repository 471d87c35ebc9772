#include "serving/served.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/did_you_mean.h"
#include "base/enumerators.h"
#include "base/random.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/matching.h"
#include "checkpoint/row_load.h"
#include "embertable/errors.h"
#include "rows/placement.h"
#include "serving/lookup.h"

namespace embertable {

template <>
struct Enumerators<OpenTables> : EnumeratorRange<OpenTables::kMap, OpenTables::kLoad> {};
template <>
struct Enumerators<Checks> : EnumeratorRange<Checks::kLazy, Checks::kNone> {};

}  // namespace embertable

namespace embertable::serving {
namespace {

using checkpoint::FileKind;
using checkpoint::Reader;
using checkpoint::SavedTable;

/// Describes the table as a checkpoint would: parameters alone.
SavedTable saved_form(const ListedTable& table) {
  SavedTable saved;
  saved.name = table.name();
  saved.vocabulary_size = table.config.vocabulary_size;
  saved.dim = table.config.dim;
  return saved;
}

ServingOptions checked(ServingOptions options) {
  check_enumerator(options.tables, "serving options: tables");
  check_enumerator(options.checks, "serving options: checks");
  return options;
}

/// Makes memory for the rows of a table.
Shard shard_of(std::int64_t rows, std::int32_t dim, RowType type) {
  return {Placement(rows, 1, Sharding::kDiv), 0, dim, {}, {.type = type}};
}

}  // namespace

Served::Served(checkpoint::FileSystem& files, Nested<FeatureConfig> features, TableList list,
               ServingOptions options)
    : files_(files),
      features_(std::move(features)),
      options_(checked(std::move(options))),
      list_(std::move(list)),
      executor_(
          engine::mark_workers(options_.executor ? options_.executor : make_inline_executor())),
      tables_(list_.tables.size()),
      building_(*executor_),
      viewed_(list_.tables.size()) {}

std::unique_ptr<Served> Served::open_all(checkpoint::FileSystem& files, Reader reader,
                                         ServingOptions options) {
  auto [features, list] = [&] {
    try {
      SavedFeatures saved = features_of(reader.manifest());
      TableList tables = list_tables(saved.features, saved.tables);
      return std::pair(std::move(saved.features), std::move(tables));
    } catch (const ValueError& error) {  // no configuration that was saved is refused
      throw DataLoss((reader.directory() / checkpoint::kManifestName).string() + ": " +
                     error.what());
    }
  }();
  auto served =
      std::make_unique<Served>(files, std::move(features), std::move(list), std::move(options));
  served->open(std::move(reader), {});
  return served;
}

Served::TableHandle Served::initialized(const ListedTable& table) const {
  Shard shard = shard_of(table.config.vocabulary_size, table.config.dim, table.config.row_type);
  if (!table.config.initializer->is_zero())
    shard.initialize(-1, *table.config.initializer, stream_of(options_.seed, table.name()),
                     *executor_);
  return std::make_shared<const ServedTable>(std::move(shard));
}

Served::TableHandle Served::mapped(const Reader& reader, std::int64_t table) const {
  std::vector<ServedTable::Part> parts;
  for (const checkpoint::FileRecord& record : reader.manifest().files) {
    if (record.kind != FileKind::kTable || record.table != table) continue;
    auto file = std::make_shared<checkpoint::MappedFile>(*reader.open(record),
                                                         reader.directory() / record.name, record);
    parts.push_back({std::move(file), record.tensors.front().offset, record.rows});
  }
  const SavedTable& saved = reader.manifest().tables[table];
  return std::make_shared<const ServedTable>(saved.vocabulary_size, saved.dim, saved.row_type,
                                             std::move(parts), options_.checks == Checks::kLazy);
}

Served::TableHandle Served::opened(const Reader& reader, std::int64_t table) const {
  if (options_.tables == OpenTables::kMap || options_.checks == Checks::kNone) {
    TableHandle handle = mapped(reader, table);
    if (options_.checks == Checks::kFull) handle->check_all(*executor_);
    return options_.tables == OpenTables::kLoad ? handle->copied(*executor_) : handle;
  }
  const SavedTable& saved = reader.manifest().tables[table];
  if (saved.row_type == RowType::kInt8) {
    TableHandle handle = mapped(reader, table);
    handle->check_all(*executor_);
    return handle->copied(*executor_);
  }
  Shard shard = shard_of(saved.vocabulary_size, saved.dim, saved.row_type);
  checkpoint::RowLoad(reader, {{.table = table,
                                .rows = {.first = 0, .step = 1, .count = shard.rows()},
                                .data = shard.memory(-1),
                                .stride = shard.stride(-1),
                                .type = saved.row_type}})
      .load(*executor_);
  return std::make_shared<const ServedTable>(std::move(shard));
}

RestoreReport Served::restore(const std::filesystem::path& path, const RestoreOptions& options) {
  const Reader reader(files_, path);
  CallerState caller = reader.caller_state();
  std::map<std::string, IdMap> id_maps = checkpoint::read_id_maps(reader);
  RestoreReport report = open(reader, options);
  report.caller = std::move(caller);
  report.id_maps = std::move(id_maps);
  return report;
}

RestoreReport Served::open(Reader reader, const RestoreOptions& options) {
  std::vector<SavedTable> ours;
  for (const ListedTable& table : list_.tables) ours.push_back(saved_form(table));
  checkpoint::Matching matching =
      checkpoint::match({.name = "the ServingEmbedding"}, ours, reader.manifest().tables, options,
                        reader.directory());
  std::vector<TableHandle> tables = tables_;
  for (const checkpoint::MatchedVariable& variable : matching.read)
    tables[variable.table] = opened(reader, variable.saved_table);
  use(std::move(tables));
  RestoreReport report{.step = reader.manifest().step,
                       .directory = reader.directory(),
                       .missing = std::move(matching.missing),
                       .extra = std::move(matching.extra),
                       .mismatched = std::move(matching.mismatched),
                       .skipped = reader.skipped()};
  reader.close_tables();  // rows are read or mapped; what is left is read when it is asked for
  if (options.tables.empty()) reader_.emplace(std::move(reader));
  return report;
}

void Served::use(std::vector<TableHandle> tables) {
  const bool all = std::ranges::all_of(tables, [](const TableHandle& t) { return t != nullptr; });
  std::vector<Rows> rows;
  if (all)
    for (const std::int64_t table : list_.table_of) rows.push_back(tables[table]->rows());
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
      if (tables_[t]->type() == RowType::kInt8)
        viewed_[t] = tables_[t]->widened(*executor_);
      else
        viewed_[t] = tables_[t]->is_one_block() ? tables_[t] : tables_[t]->copied(*executor_);
    }
    views[list_.tables[t].identity] = viewed_[t]->view();
  }
  return views;
}

void Served::look_up(const Batch& inputs, LookupOutput& output) {
  build();
  Lookup::run(
      inputs, features_, [&](std::int64_t feature) -> const Rows& { return rows_[feature]; },
      level_, output);
}

std::size_t Served::find(std::string_view table) const {
  std::vector<std::string_view> names;
  for (const ListedTable& listed : list_.tables) {
    if (listed.name() == table) return names.size();
    names.push_back(listed.name());
  }
  throw KeyError("there is no table '" + std::string(table) + "'" + name_hint(table, names));
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
    ids.push_back(static_cast<std::uint64_t>(rows[i]));
    const auto row = static_cast<std::int64_t>(ids.back());
    if (row < 0 || row >= table.num_rows())
      throw IndexError(subject + "row must be 0 <= row < " + std::to_string(table.num_rows()) +
                       ", got " + std::to_string(row) + " at position " + std::to_string(i));
  }
  table.copy(ids, out.data(), table.dim());
}

std::vector<TableInfo> Served::tables() const {
  std::vector<TableInfo> all;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const ListedTable& table = list_.tables[t];
    all.push_back({.name = table.name(),
                   .vocabulary_size = table.config.vocabulary_size,
                   .dim = table.config.dim,
                   .combiner = table.config.combiner,
                   .optimizer = {},
                   .slots = {},
                   .row_type = built() ? tables_[t]->type() : table.config.row_type});
  }
  return all;
}

CallerState Served::caller_state() const {
  return reader_ ? reader_->caller_state() : CallerState();
}

std::map<std::string, IdMap> Served::id_maps() const {
  return reader_ ? checkpoint::read_id_maps(*reader_) : std::map<std::string, IdMap>();
}

}  // namespace embertable::serving
