#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/batch.h"
#include "embertable/embedding.h"
#include "engine/assembly.h"
#include "rows/placement.h"
#include "rows/shard.h"

namespace embertable::engine {

/// One table at rest: a shard per host.
struct StoredTable {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dim = 0;
  std::vector<RuleSlot> slots;
  Placement placement;
  std::vector<Shard> shards;  ///< by host

  /// Row numbers of this table need 64 bits.
  bool wide() const noexcept { return vocabulary_size >= (std::int64_t{1} << 31); }
};

/// Every table of an engine, as the strategy (or a plain engine) owns them.
class Tables {
 public:
  /// Maps memory for all tables; every value is zero. Throws IoError if the memory cannot be had.
  Tables(const std::vector<ResolvedTable>& tables, std::int32_t hosts, Sharding sharding);

  /// Gives every variable its first values, except those for which is_set(table, slot) is true
  /// (slot -1: the rows). `tables` are those of the constructor. Throws what an initializer throws.
  using IsSet = FunctionRef<bool(std::int64_t table, std::int32_t slot)>;
  void initialize(
      const std::vector<ResolvedTable>& tables, std::uint64_t seed, Executor& executor,
      IsSet is_set = [](std::int64_t, std::int32_t) { return false; });

  const std::vector<StoredTable>& tables() const noexcept { return *tables_; }
  StoredTable& table(std::int64_t index) { return (*tables_)[index]; }

  /// A table's rows (slot -1) or one of its slots, by variable name: "video", "video/accumulators".
  struct Variable {
    const StoredTable* table = nullptr;
    std::int32_t slot = -1;
    std::int32_t width = 0;  ///< floats per row
  };

  /// Throws KeyError naming the variable and the existing ones.
  Variable find(std::string_view variable) const;

  /// Throws as Embedding::read_rows.
  void read_rows(const Variable& variable, IntegerSpan ids, std::span<float> out) const;
  void assign_rows(const Variable& variable, IntegerSpan ids, std::span<const float> values);

  /// Copies rows [first, first + count) of a variable, dense.
  void copy_rows(const Variable& variable, std::int64_t first, std::int64_t count,
                 float* out) const;

  void report(MemoryReport& report) const;

  /// Returns the rows that a host owns of a variable, one after the other, as a view that keeps
  /// their memory. Throws StateError unless hosts own blocks.
  ShardedVariable view(const Variable& variable, bool assignable,
                       std::shared_ptr<Executor> executor) const;

  /// Runs the pending update of the engine of these tables; set when that engine is built.
  std::function<void()> settle = [] {};

  /// Frees all rows that no view keeps; afterwards there are no tables.
  void drop() noexcept {
    if (none_) tables_ = std::move(none_);
  }

 private:
  std::shared_ptr<std::vector<StoredTable>> tables_;
  std::shared_ptr<std::vector<StoredTable>> none_;  ///< an empty list, allocated in advance
};

}  // namespace embertable::engine
