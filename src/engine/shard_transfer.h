#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/tensorflow/parameters.h"
#include "engine/engine.h"

namespace embertable::engine {

/// Moves shards of an engine's tables in or out. Uses the tables that the strategy holds now.
class ShardTransfer {
 public:
  /// Flushes a pending update. Throws StateError, NotImplemented if hosts are several processes.
  ShardTransfer(const Embedding& engine, std::string_view call);

  /// Whether there is anything to move; a plain engine or one that is not built has nothing.
  static bool has_variables(const Embedding& engine) noexcept;

  /// Rows of a shard, including padding; rows of the vocabulary come first.
  struct Rows {
    const StoredTable* table = nullptr;
    std::int64_t rows = 0;
    std::vector<std::int64_t> ids;  ///< ids of the rows that are not padding
  };

  /// Throws ValueError, NotImplemented.
  Rows rows_of(const ShardOperation& operation) const;

  /// Throws ValueError naming table and slot.
  void check(const Rows& rows, std::span<const MatrixView> tensors) const;
  void write(const Rows& rows, std::span<const MatrixView> tensors);
  std::vector<Matrix> read(const Rows& rows) const;

  /// Throws ValueError or KeyError unless the operations are those of one shard.
  void check_group(std::span<const ShardOperation* const> operations) const;

  /// Returns the operation of each table, in table order.
  std::vector<ShardOperation> operations(std::int64_t num_shards, std::int64_t shard_id) const;

  std::span<const StoredTable> tables() const noexcept { return settled_.tables.tables(); }

 private:
  const StoredTable& table_of(const ShardOperation& operation) const;
  void check_algorithm(const StoredTable& table, const ShardOperation& operation) const;
  Placement placement_of(const StoredTable& table, const ShardOperation& operation) const;
  std::int32_t width(const StoredTable& table, std::int32_t slot) const;

  const Setup* setup_;
  SettledTables settled_;
};

}  // namespace embertable::engine
