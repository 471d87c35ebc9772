#include "engine/table_store.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "engine/held_tables.h"
#include "engine/restoration.h"

namespace embertable::engine {
namespace {

/// Describes a table; tables with equal outlines can take each other's values.
std::string outline(const std::string& name, std::int64_t rows, std::int32_t dim,
                    const std::vector<RuleSlot>& slots) {
  std::string text =
      "'" + name + "' of " + std::to_string(rows) + " rows of " + std::to_string(dim) + " floats";
  for (const RuleSlot& slot : slots) {
    text += (slot.row_wise ? ", row-wise slot '" : ", slot '") + std::string(slot.name) + "'";
  }
  return text;
}

void require_alike(const std::vector<ResolvedTable>& configured,
                   const std::vector<StoredTable>& stored, std::string_view call) {
  const std::int64_t tables = std::max(std::ssize(configured), std::ssize(stored));
  for (std::int64_t t = 0; t < tables; ++t) {
    std::string ours = "none", theirs = "none";
    if (t < std::ssize(configured)) {
      const ResolvedTable& table = configured[t];
      ours = outline(table.name(), table.config.vocabulary_size, table.config.dim, table.slots());
    }
    if (t < std::ssize(stored)) {
      const StoredTable& table = stored[t];
      theirs = outline(table.name, table.vocabulary_size, table.dim, table.slots);
    }
    if (ours == theirs) continue;
    throw StateError(std::string(call) +
                     ": the strategy holds the tables of another engine, and they are not alike: "
                     "table " +
                     std::to_string(t) + " must be " + ours + ", got " + theirs);
  }
}

[[noreturn]] void refuse_strategy() {
  throw StateError(
      "build: the strategy holds an initialized engine already, probably of another Embedding");
}

}  // namespace

TableStore::~TableStore() { leave_strategy(); }

void TableStore::leave_strategy() noexcept {
  if (setup_.strategy && tables_) setup_.strategy->held_->release(tables_);
}

void TableStore::require_built(std::string_view call) const {
  if (!built_)
    throw StateError(std::string(call) +
                     ": the engine is not built; call build or enqueue a batch");
}

void TableStore::require_free_strategy() const {
  if (setup_.strategy->held_->get()) refuse_strategy();
}

std::shared_ptr<Tables> TableStore::prepare() const {
  if (tables_) return tables_;
  const std::vector<ResolvedTable>& configured = setup_.assembly.tables;
  auto tables = std::make_shared<Tables>(configured, setup_.all_hosts, setup_.sharding(),
                                         setup_.first_host, setup_.hosts, setup_.options.seed);
  tables->initialize(configured, setup_.options.seed, *setup_.executor, Tables::Memory::kZeros);
  return tables;
}

void TableStore::claim_strategy(const std::shared_ptr<Tables>& tables) const {
  if (!setup_.strategy->held_->take(tables)) refuse_strategy();
}

void TableStore::adopt(std::shared_ptr<Tables> tables) noexcept {
  tables_ = std::move(tables);
  built_ = true;
}

void TableStore::build_plain() {
  const std::lock_guard lock(building_);
  if (!built_) adopt(prepare());
}

std::shared_ptr<Tables> TableStore::held() const {
  std::shared_ptr<Tables> held = setup_.accelerated() ? setup_.strategy->held_->get() : tables_;
  if (!held)
    throw StateError("the strategy was initialized anew: the tables of this engine are gone");
  return held;
}

Tables& TableStore::own() const {
  if (held() != tables_) throw StateError("the strategy holds the tables of another engine");
  return *tables_;
}

std::shared_ptr<Tables> TableStore::held(std::string_view call) const {
  std::shared_ptr<Tables> tables = held();
  if (tables != tables_) require_alike(setup_.assembly.tables, tables->tables(), call);
  return tables;
}

std::map<TablePtr, TableView> TableStore::views() const {
  std::map<TablePtr, TableView> views;
  for (std::int64_t t = 0; t < std::ssize(setup_.assembly.tables); ++t) {
    const RowBlock& rows = tables_->tables()[t].shards.front().block();
    views[setup_.assembly.tables[t].identity] = view_of(rows);
  }
  return views;
}

void TableStore::report(MemoryReport& report) const {
  if (tables_) tables_->report(report);
}

RestoreReport TableStore::restore(const checkpoint::StepSource& source,
                                  const RestoreOptions& options, Progress& progress,
                                  const RestoreEvents& events) {
  const Restoration restoration(setup_, source, options);
  const std::string failure = progress.failure();
  if (!failure.empty()) restoration.require_full_restore(failure);
  RestoreReport report = restoration.report();
  if (!tables_) {
    tables_ = restoration.read_anew();
  } else {
    restoration.read_into(*tables_, progress,
                          [&] { events.before_rows_change(restoration.is_full()); });
    if (!failure.empty()) {
      events.recovered();
      progress.recover();
    }
  }
  if (options.tables.empty()) progress.steps().set(restoration.step());
  return report;
}

}  // namespace embertable::engine
