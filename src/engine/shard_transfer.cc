#include "engine/shard_transfer.h"

#include <algorithm>
#include <limits>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

std::string subject(const ShardOperation& operation) {
  return operation.table_name.empty() ? "table id " + number(operation.table_id)
                                      : "table '" + operation.table_name + "'";
}

/// Returns "parameters" or the name of a slot.
std::string part_name(const StoredTable& table, std::int32_t slot) {
  return slot < 0 ? "parameters" : std::string(table.slots[slot].name) + ", slot " + number(slot);
}

void expect_same(const char* what, const std::string& first, const std::string& other) {
  if (first == other) return;
  throw ValueError(std::string("operations of one shard must have one ") + what + ", got '" +
                   first + "' and '" + other + "'");
}

Engine& engine_with_all_rows(const Embedding& embedding, std::string_view call) {
  Engine& engine = engine_of(embedding);
  engine.setup.require_accelerated(call);
  if (engine.setup.group->several())
    throw NotImplemented(std::string(call) +
                         ": shards are not moved where hosts are several processes; read_rows and "
                         "assign_rows reach all rows");
  return engine;
}

}  // namespace

ShardTransfer::ShardTransfer(const Embedding& engine, std::string_view call)
    : setup_(&engine_with_all_rows(engine, call).setup),
      settled_(engine_of(engine).settled_tables(call)) {}

bool ShardTransfer::has_variables(const Embedding& engine) noexcept {
  return engine.accelerated() && engine.built();
}

const StoredTable& ShardTransfer::table_of(const ShardOperation& operation) const {
  const bool by_id = operation.table_id >= 0, by_name = !operation.table_name.empty();
  if (by_id == by_name) {
    throw ValueError("an operation must have one of table_id >= 0 and table_name, got " +
                     number(operation.table_id) + " and '" + operation.table_name + "'");
  }
  for (const StoredTable& table : tables()) {
    const auto id = &table - tables().data();
    if (by_id ? id == operation.table_id : table.name == operation.table_name) return table;
  }
  throw ValueError(subject(operation) + ": must be one of the " + number(std::ssize(tables())) +
                   " tables of the engine");
}

void ShardTransfer::check_algorithm(const StoredTable& table,
                                    const ShardOperation& operation) const {
  const auto id = &table - tables().data();
  const Optimizer& optimizer = *setup_->assembly.tables[id].optimizer;
  if (optimizer.custom_rule()) {
    throw NotImplemented("table '" + table.name +
                         "': parameters of a rule of the caller's own are neither loaded nor "
                         "retrieved");
  }
  const std::string expected = algorithm_name(optimizer);
  if (operation.algorithm == expected) return;
  throw ValueError("table '" + table.name + "': its optimizer needs operations of " + expected +
                   ", got one of " + operation.algorithm);
}

/// Returns the placement of the padded table in the shards of the operation.
Placement ShardTransfer::placement_of(const StoredTable& table,
                                      const ShardOperation& operation) const {
  const std::string where = "table '" + table.name + "': ";
  const std::int64_t rows = std::max<std::int64_t>(table.vocabulary_size, table.placement.hosts());
  const std::int64_t shards = operation.num_shards;
  if (shards < 1 || shards > std::numeric_limits<std::int32_t>::max())
    throw ValueError(where + "num_shards must be 1 <= num_shards < 2^31, got " + number(shards));
  if (operation.shard_id < 0 || operation.shard_id >= shards) {
    throw ValueError(where + "shard_id must be 0 <= shard_id < " + number(shards) + ", got " +
                     number(operation.shard_id));
  }
  const Placement placement(rows, static_cast<std::int32_t>(shards), table.placement.sharding());
  if (placement.shard_rows(static_cast<std::int32_t>(operation.shard_id)) == 0) {
    throw ValueError(where + "shard " + number(operation.shard_id) + " of " + number(shards) +
                     " has none of the " + number(rows) + " rows");
  }
  return placement;
}

ShardTransfer::Rows ShardTransfer::rows_of(const ShardOperation& operation) const {
  const StoredTable& table = table_of(operation);
  check_algorithm(table, operation);
  const Placement placement = placement_of(table, operation);
  const auto shard = static_cast<std::int32_t>(operation.shard_id);
  Rows rows{&table, placement.shard_rows(shard), {}};
  for (std::int64_t local = 0; local < rows.rows; ++local) {
    const std::int64_t id = placement.global_row(shard, local);
    if (id < table.vocabulary_size) rows.ids.push_back(id);
  }
  return rows;
}

std::int32_t ShardTransfer::width(const StoredTable& table, std::int32_t slot) const {
  return table.shards.front().width(slot);
}

void ShardTransfer::check(const Rows& rows, std::span<const MatrixView> tensors) const {
  const StoredTable& table = *rows.table;
  const std::string where = "table '" + table.name + "': ";
  const auto expected = std::ssize(table.slots) + 1;
  if (std::ssize(tensors) < expected) {
    const auto missing = static_cast<std::int32_t>(std::ssize(tensors)) - 1;
    throw ValueError(where + part_name(table, missing) + " is missing: there must be " +
                     number(expected) + " tensors, got " + number(std::ssize(tensors)));
  }
  if (std::ssize(tensors) > expected) {
    throw ValueError(where + "slot " + number(expected - 1) + " is one too many: there must be " +
                     number(expected) + " tensors, got " + number(std::ssize(tensors)));
  }
  for (std::int32_t slot = -1; slot < std::ssize(table.slots); ++slot) {
    const MatrixView& tensor = tensors[slot + 1];
    const Shape shape = {rows.rows, width(table, slot)};
    if (tensor.shape == shape && std::ssize(tensor.values) == shape.num_elements()) continue;
    throw ValueError(where + part_name(table, slot) + " must have shape " + shape.to_string() +
                     ", got " + tensor.shape.to_string() + " with " +
                     number(std::ssize(tensor.values)) + " numbers");
  }
}

void ShardTransfer::write(const Rows& rows, std::span<const MatrixView> tensors) {
  for (std::int32_t slot = -1; slot < std::ssize(rows.table->slots); ++slot) {
    const Tables::Variable variable{rows.table, slot, width(*rows.table, slot)};
    const std::span<const float> values = tensors[slot + 1].values;
    settled_.tables.assign_rows(variable, rows.ids, values.first(rows.ids.size() * variable.width));
  }
}

std::vector<Matrix> ShardTransfer::read(const Rows& rows) const {
  std::vector<Matrix> all;
  for (std::int32_t slot = -1; slot < std::ssize(rows.table->slots); ++slot) {
    const Tables::Variable variable{rows.table, slot, width(*rows.table, slot)};
    Matrix matrix;
    matrix.shape = {rows.rows, variable.width};
    matrix.values.resize(rows.rows * variable.width);
    settled_.tables.read_rows(variable, rows.ids,
                              std::span(matrix.values).first(rows.ids.size() * variable.width));
    all.push_back(std::move(matrix));
  }
  return all;
}

void ShardTransfer::check_group(std::span<const ShardOperation* const> operations) const {
  if (operations.empty()) throw ValueError("there must be operations, got none");
  std::vector<int> times(tables().size());
  const std::string* config = nullptr;
  for (const ShardOperation* operation : operations) {
    const ShardOperation& first = *operations.front();
    expect_same("num_shards", number(first.num_shards), number(operation->num_shards));
    expect_same("shard_id", number(first.shard_id), number(operation->shard_id));
    expect_same("device", first.device, operation->device);
    if (!operation->config.empty()) {
      if (config != nullptr && *config != operation->config)
        throw ValueError("operations of one shard must have equal configurations, got two of " +
                         number(std::ssize(*config)) + " and " +
                         number(std::ssize(operation->config)) + " bytes that differ");
      config = &operation->config;
    }
    const StoredTable& table = table_of(*operation);
    if (++times[&table - tables().data()] > 1)
      throw ValueError("table '" + table.name + "': there must be one operation, got a second");
  }
  for (std::int64_t t = 0; t < std::ssize(times); ++t) {
    if (times[t] == 0) {
      throw KeyError("table '" + tables()[t].name + "', id " + number(t) +
                     ": there must be one operation, got none");
    }
  }
  if (config == nullptr) throw ValueError("one of the operations must have a config, got none");
}

std::vector<ShardOperation> ShardTransfer::operations(std::int64_t num_shards,
                                                      std::int64_t shard_id) const {
  std::vector<ShardOperation> all;
  for (std::int64_t t = 0; t < std::ssize(tables()); ++t) {
    ShardOperation operation;
    operation.algorithm = algorithm_name(*setup_->assembly.tables[t].optimizer);
    operation.table_id = t;
    operation.num_shards = num_shards;
    operation.shard_id = shard_id;
    all.push_back(std::move(operation));
  }
  return all;
}

}  // namespace embertable::engine
