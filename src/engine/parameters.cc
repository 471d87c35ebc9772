#include "embertable/tensorflow/parameters.h"

#include <cctype>
#include <string_view>
#include <utility>

#include "embertable/errors.h"
#include "engine/shard_transfer.h"

namespace embertable {
namespace {

using engine::ShardTransfer;

std::vector<const ShardOperation*> pointers_to(std::span<const ShardOperation> operations) {
  std::vector<const ShardOperation*> all;
  for (const ShardOperation& operation : operations) all.push_back(&operation);
  return all;
}

/// Checks all tensors, then writes all.
void load(ShardTransfer& transfer, std::span<const ShardOperation* const> operations,
          std::span<const std::span<const MatrixView>> tensors) {
  std::vector<ShardTransfer::Rows> rows;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    rows.push_back(transfer.rows_of(*operations[i]));
    transfer.check(rows.back(), tensors[i]);
  }
  for (std::size_t i = 0; i < operations.size(); ++i) transfer.write(rows[i], tensors[i]);
}

void expect_one_for_each_table(const std::string& list, std::int64_t entries, std::int64_t tables) {
  if (entries == tables) return;
  throw ValueError(list + " must have one entry for each of " + std::to_string(tables) +
                   " tables, got " + std::to_string(entries));
}

void check_lists(const AllParameters<MatrixView>& tensors, std::int64_t tables) {
  expect_one_for_each_table("parameters", std::ssize(tensors.parameters), tables);
  for (std::size_t i = 0; i < tensors.auxiliary.size(); ++i) {
    if (!tensors.auxiliary[i].empty())
      expect_one_for_each_table("auxiliary" + std::to_string(i + 1),
                                std::ssize(tensors.auxiliary[i]), tables);
  }
}

/// Returns the tensors of one table up to the last entry that has elements; empty ones before it
/// are missing slots.
std::vector<MatrixView> tensors_of(const AllParameters<MatrixView>& tensors, std::size_t table,
                                   const std::string& name) {
  std::vector<MatrixView> all = {tensors.parameters[table]};
  bool ended = false;
  for (std::size_t i = 0; i < tensors.auxiliary.size(); ++i) {
    const auto& list = tensors.auxiliary[i];
    const bool empty = list.empty() || list[table].values.empty();
    if (!empty && ended)
      throw ValueError("table '" + name + "': slot " + std::to_string(i - 1) +
                       " is missing, got one after it");
    if (!empty) all.push_back(list[table]);
    ended = empty;
  }
  return all;
}

std::string host_variable_name(const std::string& table, std::string_view slot, std::int32_t host) {
  return table + (slot.empty() ? "" : "/" + std::string(slot)) + "_" + std::to_string(host);
}

}  // namespace

std::string algorithm_name(const Optimizer& optimizer) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"adam", "ADAM"},
      {"adamw", "AdamW"},
      {"centered_rms_prop", "CenteredRMSProp"},
      {"custom", "UserDefinedProgram"},
      {"ftrl", "FTRL"},
      {"lamb", "LAMB"},
      {"lars_sgd", "LARS"},
      {"mdl_adagrad_light", "MDLAdagradLight"},
      {"rms_prop", "RMSProp"},
      {"sgd", "StochasticGradientDescent"},
  };
  const std::string rule = optimizer.custom_rule() ? "custom" : optimizer.rule();
  for (const auto& [known, name] : kNames)
    if (known == rule) return std::string(name);
  std::string name;
  bool begins = true;
  for (const char c : rule) {
    if (c != '_') name += begins ? static_cast<char>(std::toupper(c)) : c;
    begins = c == '_';
  }
  return name;
}

void load_parameters(Embedding& engine, const ShardOperation& operation,
                     std::span<const MatrixView> tensors) {
  ShardTransfer transfer(engine, "load_parameters");
  const ShardOperation* const one = &operation;
  load(transfer, std::span(&one, 1), std::span(&tensors, 1));
}

std::vector<Matrix> retrieve_parameters(const Embedding& engine, const ShardOperation& operation) {
  const ShardTransfer transfer(engine, "retrieve_parameters");
  return transfer.read(transfer.rows_of(operation));
}

void load_shard(Embedding& engine, std::span<const LoadOperation> operations) {
  ShardTransfer transfer(engine, "load_shard");
  std::vector<const ShardOperation*> all;
  std::vector<std::span<const MatrixView>> tensors;
  for (const LoadOperation& load : operations) {
    all.push_back(&load.operation);
    tensors.emplace_back(load.tensors);
  }
  transfer.check_group(all);
  load(transfer, all, tensors);
}

std::vector<std::vector<Matrix>> retrieve_shard(const Embedding& engine,
                                                std::span<const ShardOperation> operations) {
  const ShardTransfer transfer(engine, "retrieve_shard");
  transfer.check_group(pointers_to(operations));
  std::vector<std::vector<Matrix>> all;
  for (const ShardOperation& operation : operations)
    all.push_back(transfer.read(transfer.rows_of(operation)));
  return all;
}

void load_all_parameters(Embedding& engine, std::int64_t num_shards, std::int64_t shard_id,
                         const AllParameters<MatrixView>& tensors) {
  ShardTransfer transfer(engine, "load_all_parameters");
  check_lists(tensors, std::ssize(transfer.tables()));
  const std::vector<ShardOperation> operations = transfer.operations(num_shards, shard_id);
  std::vector<std::vector<MatrixView>> by_table;
  for (std::size_t t = 0; t < operations.size(); ++t)
    by_table.push_back(tensors_of(tensors, t, transfer.tables()[t].name));
  const std::vector<std::span<const MatrixView>> views(by_table.begin(), by_table.end());
  load(transfer, pointers_to(operations), views);
}

AllParameters<Matrix> retrieve_all_parameters(const Embedding& engine, std::int64_t num_shards,
                                              std::int64_t shard_id) {
  const ShardTransfer transfer(engine, "retrieve_all_parameters");
  AllParameters<Matrix> all;
  for (const ShardOperation& operation : transfer.operations(num_shards, shard_id)) {
    std::vector<Matrix> tensors = transfer.read(transfer.rows_of(operation));
    all.parameters.push_back(std::move(tensors.front()));
    for (std::size_t i = 0; i < all.auxiliary.size(); ++i) {
      Matrix none;
      none.shape = {0, 0};
      all.auxiliary[i].push_back(i + 1 < tensors.size() ? std::move(tensors[i + 1])
                                                        : std::move(none));
    }
  }
  return all;
}

void HostVariables::retrieve() {
  if (!ShardTransfer::has_variables(*engine_)) return;
  const ShardTransfer transfer(*engine_, "retrieve");
  decltype(variables) read;
  for (const engine::StoredTable& table : transfer.tables()) {
    const Placement shares = table.placement.shares();
    for (std::int32_t host = 0; host < shares.hosts(); ++host) {
      ShardTransfer::Rows rows{&table, shares.shard_rows(host), {}};
      if (rows.rows == 0) continue;
      for (std::int64_t local = 0; local < rows.rows; ++local)
        rows.ids.push_back(shares.global_row(host, local));
      std::vector<Matrix> tensors = transfer.read(rows);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::string_view slot = i == 0 ? "" : table.slots[i - 1].name;
        read[table.name][i == 0 ? "parameters" : std::string(slot)].push_back(
            {host_variable_name(table.name, slot, host), std::move(tensors[i])});
      }
    }
  }
  variables.swap(read);
}

const HostVariables::Variable* HostVariables::find(const std::string& table, std::string_view slot,
                                                   std::size_t place) const {
  const auto of_table = variables.find(table);
  if (of_table == variables.end()) return nullptr;
  const auto of_slot = of_table->second.find(std::string(slot));
  return of_slot == of_table->second.end() || place >= of_slot->second.size()
             ? nullptr
             : &of_slot->second[place];
}

void HostVariables::load() {
  if (!ShardTransfer::has_variables(*engine_)) return;
  if (variables.empty())
    throw StateError("load: there are no host variables yet; retrieve them first");
  ShardTransfer transfer(*engine_, "load");
  std::vector<ShardTransfer::Rows> all;
  std::vector<std::vector<MatrixView>> tensors;
  for (const engine::StoredTable& table : transfer.tables()) {
    const Placement shares = table.placement.shares();
    std::size_t variable = 0;  // hosts without rows have none
    for (std::int32_t host = 0; host < shares.hosts(); ++host) {
      ShardTransfer::Rows rows{&table, shares.shard_rows(host), {}};
      if (rows.rows == 0) continue;
      for (std::int64_t local = 0; local < rows.rows; ++local)
        rows.ids.push_back(shares.global_row(host, local));
      std::vector<MatrixView>& views = tensors.emplace_back();
      for (std::size_t i = 0; i <= table.slots.size(); ++i) {
        const Variable* const part =
            find(table.name, i == 0 ? "parameters" : table.slots[i - 1].name, variable);
        if (part == nullptr) break;
        views.push_back({part->matrix.values, part->matrix.shape});
      }
      ++variable;
      transfer.check(rows, views);
      all.push_back(std::move(rows));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) transfer.write(all[i], tensors[i]);
}

}  // namespace embertable
