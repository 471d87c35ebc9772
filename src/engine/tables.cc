#include "engine/tables.h"

#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"

namespace embertable::engine {
namespace {

/// Sets the random numbers of rounding apart from those of first values.
constexpr std::uint64_t kRoundingSeed = 1;

std::string variable_name(const StoredTable& table, std::int32_t slot) {
  return slot < 0 ? table.name : table.name + "/" + std::string(table.slots[slot].name);
}

StoredTable make_table(const ResolvedTable& resolved, std::int32_t hosts, Sharding sharding,
                       std::int32_t first_host, std::int32_t local_hosts, std::uint64_t seed) {
  StoredTable table{
      resolved.name(),
      resolved.config.vocabulary_size,
      resolved.config.dim,
      {},
      Placement(resolved.config.vocabulary_size, hosts, sharding, resolved.config.replicated),
      first_host,
      {}};
  std::vector<bool> row_wise;
  table.slots = resolved.slots();
  for (const RuleSlot& slot : table.slots) row_wise.push_back(slot.row_wise);
  const RowStorage storage = {resolved.config.row_type,
                              stream_of(mix_seeds(seed, kRoundingSeed), table.name)};
  try {
    for (std::int32_t host = first_host; host < first_host + local_hosts; ++host)
      table.shards.emplace_back(table.placement, host, table.dim, row_wise, storage);
  } catch (const IoError& error) {
    throw IoError("table '" + table.name + "' of " + std::to_string(table.vocabulary_size) +
                  " rows: " + error.what());
  }
  return table;
}

void initialize(StoredTable& table, std::int32_t slot, const Initializer& initializer,
                std::uint64_t seed, Executor& executor) {
  const std::uint64_t stream = stream_of(seed, variable_name(table, slot));
  for (Shard& shard : table.shards) {
    // A function need not give the same twice, and copies of a table must be equal.
    if (table.placement.replicated() && &shard != &table.shards.front())
      shard.copy(slot, table.shards.front(), executor);
    else
      shard.initialize(slot, initializer, stream, executor);
  }
}

/// The shard that has a row.
const Shard& shard_of(const Tables::Variable& variable, std::int64_t row) {
  const StoredTable& table = *variable.table;
  return table.shard(table.placement.host_of(row, table.first_host));
}

void read_row(const Tables::Variable& variable, std::int64_t row, float* out) {
  shard_of(variable, row).read(variable.slot, variable.table->placement.local_row(row), 1, 1, out);
}

void add(MemoryReport& report, std::string name, const MemoryUse& use) {
  MemoryReport::Entry entry;
  entry.name = std::move(name);
  entry.bytes = use.bytes;
  entry.resident_bytes = use.resident_bytes;
  entry.huge_page_share = use.resident_bytes == 0 ? 0.0
                                                  : static_cast<double>(use.huge_bytes) /
                                                        static_cast<double>(use.resident_bytes);
  report.total_bytes += entry.bytes;
  report.entries.push_back(std::move(entry));
}

void accumulate(MemoryUse& total, const MemoryUse& part) {
  total.bytes += part.bytes;
  total.resident_bytes += part.resident_bytes;
  total.huge_bytes += part.huge_bytes;
}

}  // namespace

Tables::Tables(const std::vector<ResolvedTable>& tables, std::int32_t hosts, Sharding sharding,
               std::int32_t first_host, std::int32_t local_hosts, std::uint64_t seed)
    : tables_(std::make_shared<std::vector<StoredTable>>()),
      none_(std::make_shared<std::vector<StoredTable>>()) {
  for (const ResolvedTable& resolved : tables)
    tables_->push_back(make_table(resolved, hosts, sharding, first_host, local_hosts, seed));
}

void Tables::initialize(const std::vector<ResolvedTable>& tables, std::uint64_t seed,
                        Executor& executor, Memory memory, IsSet is_set) {
  for (std::int64_t t = 0; t < std::ssize(tables); ++t) {
    const auto slots = static_cast<std::int32_t>((*tables_)[t].slots.size());
    for (std::int32_t slot = -1; slot < slots; ++slot) {
      if (is_set(t, slot)) continue;
      const Initializer& initializer =
          slot < 0 ? *tables[t].config.initializer : tables[t].slot_initializers[slot];
      if (memory == Memory::kZeros && initializer.is_zero()) continue;
      engine::initialize((*tables_)[t], slot, initializer, seed, executor);
    }
  }
}

Tables::Variable Tables::find(std::string_view variable) const {
  std::string known;
  for (const StoredTable& table : tables()) {
    for (std::int32_t slot = -1; slot < static_cast<std::int32_t>(table.slots.size()); ++slot) {
      const std::string name = variable_name(table, slot);
      if (name == variable) return {&table, slot, table.shards.front().width(slot)};
      known += (known.empty() ? "'" : ", '") + name + "'";
    }
  }
  throw KeyError("no variable '" + std::string(variable) + "'; there are " + known);
}

std::vector<std::int64_t> Tables::checked_rows(const Variable& variable, IntegerSpan ids,
                                               std::int64_t values) {
  const std::string name = variable_name(*variable.table, variable.slot);
  if (values != ids.size() * variable.width) {
    throw ValueError("variable '" + name + "': " + std::to_string(ids.size()) + " rows of " +
                     std::to_string(variable.width) + " floats need " +
                     std::to_string(ids.size() * variable.width) + ", got " +
                     std::to_string(values));
  }
  std::vector<std::int64_t> rows(ids.size());
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    rows[i] = ids[i];
    if (rows[i] < 0 || rows[i] >= variable.table->vocabulary_size) {
      throw IndexError("variable '" + name + "': row must be 0 <= row < " +
                       std::to_string(variable.table->vocabulary_size) + ", got " +
                       std::to_string(rows[i]) + " at position " + std::to_string(i));
    }
  }
  return rows;
}

void Tables::read_rows(const Variable& variable, std::span<const std::int64_t> rows,
                       std::span<float> out) const {
  float* values = out.data();
  for (const std::int64_t row : rows) {
    read_row(variable, row, values);
    values += variable.width;
  }
}

void Tables::assign_rows(const Variable& variable, std::span<const std::int64_t> rows,
                         std::span<const float> values) {
  const StoredTable& table = *variable.table;
  const float* value = values.data();
  for (const std::int64_t row : rows) {
    if (table.placement.replicated()) {
      for (const Shard& copy : table.shards) copy.write(variable.slot, row, value);
    } else {
      shard_of(variable, row).write(variable.slot, table.placement.local_row(row), value);
    }
    value += variable.width;
  }
}

void Tables::copy_rows(const Variable& variable, std::int64_t first, std::int64_t count,
                       float* out) const {
  for (std::int64_t i = 0; i < count; ++i) read_row(variable, first + i, out + i * variable.width);
}

ShardedVariable Tables::view(const Variable& variable, bool assignable,
                             std::shared_ptr<Executor> executor) const {
  const Placement& placement = variable.table->placement;
  const std::string name = variable_name(*variable.table, variable.slot);
  if (!placement.holds_blocks())
    throw StateError("sharded_variable: the hosts of '" + name +
                     "' must own blocks of rows (div), got rows by modulo; read_rows copies them "
                     "in their order");
  std::vector<embertable::Variable> components;
  for (const Shard& shard : variable.table->shards) {
    if (shard.rows() == 0) continue;
    if (placement.replicated() && !components.empty()) break;  // the other copies are the same
    VariableMemory memory{.data = shard.memory(variable.slot),
                          .dtype = shard.type(variable.slot) == RowType::kBfloat16
                                       ? DType::kBFloat16
                                       : DType::kFloat32,
                          .shape = {shard.rows()},
                          .row_stride = shard.stride_bytes(variable.slot),
                          .assignable = assignable,
                          .owner = tables_};
    const bool row_wise = variable.slot >= 0 && shard.is_row_wise(variable.slot);
    if (!row_wise) memory.shape = memory.shape.append(variable.width);
    components.push_back(embertable::Variable::over(
        std::move(memory), name + "_" + std::to_string(components.size())));
  }
  return ShardedVariable(std::move(components), {.name = name, .executor = std::move(executor)});
}

void Tables::report(MemoryReport& report) const {
  for (const StoredTable& table : tables()) {
    MemoryUse records;
    for (const Shard& shard : table.shards) accumulate(records, shard.records().use());
    add(report, table.name, records);
    for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(table.slots.size()); ++slot) {
      if (!table.slots[slot].row_wise) continue;  // within the record
      MemoryUse use;
      for (const Shard& shard : table.shards) accumulate(use, shard.row_wise_slot(slot).use());
      add(report, variable_name(table, slot), use);
    }
  }
}

}  // namespace embertable::engine
