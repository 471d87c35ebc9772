#include "embertable/tensorflow/sparse_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "config/table_list.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

using wire::SparseCoreTableLayout;

constexpr std::int64_t kTile = 8;  ///< width and, on each core, height are multiples of it

/// Tables that are stacked.
struct Stack {
  std::int64_t padded_width = 0;
  std::optional<Optimizer> optimizer;
  std::optional<QuantizationConfig> quantization;
  std::vector<SparseCoreTableLayout> tables;
  std::int64_t rows = 0;  ///< rows of one core

  bool takes(const Stack& other) const {
    return padded_width == other.padded_width && optimizer == other.optimizer &&
           quantization == other.quantization;
  }
};

std::int32_t cores_of(const SparseCoreTopology& topology) {
  const std::int64_t cores = std::int64_t{topology.num_partitions} * topology.cores_per_partition;
  if (topology.num_partitions < 1 || topology.cores_per_partition < 1 ||
      cores > std::numeric_limits<std::int32_t>::max()) {
    throw ValueError(fmt::format(
        "sparse core topology: num_partitions and cores_per_partition must be >= 1 and their "
        "product fit 32 bits, got {} and {}",
        topology.num_partitions, topology.cores_per_partition));
  }
  return static_cast<std::int32_t>(cores);
}

/// Rounds up to a multiple. Throws ValueError naming the table beyond 64 bits.
std::int64_t padded(std::int64_t value, std::int64_t multiple, const std::string& table) {
  if (value > std::numeric_limits<std::int64_t>::max() - multiple) {
    throw ValueError(fmt::format("table '{}': vocabulary_size must leave room for padding, got {}",
                                 table, value));
  }
  return (value + multiple - 1) / multiple * multiple;
}

void check_optimizer(const Optimizer& optimizer, const std::string& table) {
  const OptimizerOptions& options = optimizer.options();
  if (options.weight_decay_factor == 0 && !options.multiply_weight_decay_factor_by_learning_rate)
    return;
  throw NotImplemented(fmt::format(
      "table '{}': SparseCores have neither weight_decay_factor nor "
      "multiply_weight_decay_factor_by_learning_rate, got {} and {}",
      table, options.weight_decay_factor, options.multiply_weight_decay_factor_by_learning_rate));
}

/// Makes a stack of a single table.
Stack stack_of(const ListedTable& table, const std::optional<Optimizer>& optimizer,
               const SparseCoreTopology& topology) {
  const TableConfig& config = table.config;
  const std::int32_t cores = cores_of(topology);
  Stack stack = {.padded_width = padded(config.dim, kTile, table.name()),
                 .optimizer = config.optimizer ? config.optimizer : optimizer,
                 .quantization = config.quantization_config};
  if (stack.optimizer) check_optimizer(*stack.optimizer, table.name());
  const std::int64_t height = padded(config.vocabulary_size, kTile * cores, table.name());
  stack.rows = height / cores;
  stack.tables = {{.table_name = table.name(),
                   .num_sparse_cores = cores,
                   .num_partitions = topology.num_partitions,
                   .unsharded_shape = {config.vocabulary_size, config.dim},
                   .unsharded_padded_shape = {height, stack.padded_width}}};
  return stack;
}

/// Adds a table to the end of the stack; each starts one partition further.
void push(Stack& stack, Stack&& table, std::int32_t cores_per_partition) {
  SparseCoreTableLayout& layout = table.tables.front();
  layout.sparse_core_shard_row_offset = stack.rows;
  layout.sparse_core_shard_rotation = static_cast<std::int64_t>(stack.tables.size()) *
                                      cores_per_partition % layout.num_sparse_cores;
  if (__builtin_add_overflow(stack.rows, table.rows, &stack.rows)) {
    throw ValueError(
        fmt::format("table '{}': the rows of its stack must fit 64 bits", layout.table_name));
  }
  stack.tables.push_back(std::move(layout));
}

void finish(Stack& stack) {
  std::string name;
  for (const SparseCoreTableLayout& table : stack.tables)
    name.append(name.empty() ? "" : "_").append(table.table_name);
  for (SparseCoreTableLayout& table : stack.tables) {
    table.stacked_table_name = name;
    table.total_rows_per_sparse_core_shard = stack.rows;
  }
}

}  // namespace

wire::SparseCoreTableLayouts sparse_core_layouts(const Nested<FeatureConfig>& features,
                                                 const std::optional<Optimizer>& optimizer,
                                                 const SparseCoreTopology& topology,
                                                 const SparseCoreEmbeddingConfig& config) {
  cores_of(topology);  // checked even without tables
  std::vector<Stack> stacks;
  std::vector<ListedTable> tables = list_tables(features).tables;
  std::ranges::sort(tables, {}, [](const ListedTable& table) { return table.name(); });
  for (const ListedTable& table : tables) {
    Stack alone = stack_of(table, optimizer, topology);
    const auto below =
        std::ranges::find_if(stacks, [&](const Stack& stack) { return stack.takes(alone); });
    if (below == stacks.end() || config.disable_table_stacking) {
      stacks.push_back(std::move(alone));
    } else {
      push(*below, std::move(alone), topology.cores_per_partition);
    }
  }
  wire::SparseCoreTableLayouts layouts;
  for (Stack& stack : stacks) {
    finish(stack);
    std::ranges::move(stack.tables, std::back_inserter(layouts.tables));
  }
  return layouts;
}

}  // namespace embertable
