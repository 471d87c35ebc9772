#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/batch.h"
#include "embertable/embedding.h"
#include "engine/schedule/progress.h"
#include "engine/schedule/reentrancy_guard.h"
#include "engine/setup/assembly.h"
#include "rows/placement.h"
#include "rows/shard.h"

namespace embertable::engine {

/// One table at rest: the shards of this process's hosts, which are copies if it is replicated.
struct StoredTable {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dim = 0;
  std::vector<RuleSlot> slots;
  Placement placement;
  std::int32_t first_host = 0;
  std::vector<Shard> shards;  ///< by host, from the first one of this process

  /// Returns the shard of a host. Requires: it is one of this process.
  const Shard& shard(std::int32_t host) const { return shards[host - first_host]; }
};

/// Returns rows as callers see them.
inline TableView view_of(const RowBlock& rows) noexcept {
  return {rows.row, rows.rows, rows.stride, rows.dim, rows.half};
}

/// The lock of an engine's steps, their count, and how another engine of its strategy, which may
/// outlive it, runs its pending update.
class StepLock {
 public:
  StepLock(std::shared_ptr<Executor> executor, std::shared_ptr<StepCount> count)
      : executor_(std::move(executor)), lock_(*executor_), count_(std::move(count)) {}

  ReentrancyGuard& lock() noexcept { return lock_; }
  StepCount& count() noexcept { return *count_; }

  /// Locks the steps and runs the pending update, if the engine is still there. Throws StateError
  /// naming `call` if it has failed.
  std::unique_lock<ReentrancyGuard> settle(std::string_view call) {
    std::unique_lock lock(lock_);
    if (flush_) flush_(call);
    return lock;
  }

  /// Sets what runs the pending update; nothing once the engine goes. Requires: the steps are
  /// locked, or no other engine knows this one.
  using Flush = std::function<void(std::string_view call)>;
  void set_flush(Flush flush) noexcept { flush_ = std::move(flush); }

 private:
  const std::shared_ptr<Executor> executor_;
  ReentrancyGuard lock_;
  const std::shared_ptr<StepCount> count_;
  Flush flush_;
};

/// Every table of an engine, as the strategy (or a plain engine) owns them.
class Tables {
 public:
  /// What the memory of variables holds before their first values: zeros, as it is new, or values.
  enum class Memory : std::uint8_t { kZeros, kValues };

  /// Maps memory for the shards of the hosts from `first_host` on, of `hosts` in all; every value
  /// is zero. `seed` keys the rounding of bfloat16 rows. Throws IoError if the memory cannot be
  /// had.
  Tables(const std::vector<ResolvedTable>& tables, std::int32_t hosts, Sharding sharding,
         std::int32_t first_host, std::int32_t local_hosts, std::uint64_t seed);

  /// Gives every variable its first values, except those for which is_set(table, slot) is true
  /// (slot -1: the rows). `tables` are those of the constructor. Throws what an initializer throws.
  using IsSet = FunctionRef<bool(std::int64_t table, std::int32_t slot)>;
  void initialize(
      const std::vector<ResolvedTable>& tables, std::uint64_t seed, Executor& executor,
      Memory memory, IsSet is_set = [](std::int64_t, std::int32_t) { return false; });

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

  /// Returns a copy of ids that were checked, whatever the caller's become: their rows. Throws
  /// IndexError for ids outside the table, ValueError unless there are width values for each.
  static std::vector<std::int64_t> checked_rows(const Variable& variable, IntegerSpan ids,
                                                std::int64_t values);

  /// Read and change rows, with width values for each. Rows of a replicated table are assigned in
  /// every copy. Requires: the rows are of the table and of hosts of this process.
  void read_rows(const Variable& variable, std::span<const std::int64_t> rows,
                 std::span<float> out) const;
  void assign_rows(const Variable& variable, std::span<const std::int64_t> rows,
                   std::span<const float> values);

  /// Copies rows [first, first + count) of a variable, dense. Requires: this process is all hosts.
  void copy_rows(const Variable& variable, std::int64_t first, std::int64_t count,
                 float* out) const;

  void report(MemoryReport& report) const;

  /// Returns the rows that a host owns of a variable, one after the other, as a view that keeps
  /// their memory; of a replicated table, those of one copy. Throws StateError unless hosts own
  /// blocks.
  ShardedVariable view(const Variable& variable, bool assignable,
                       std::shared_ptr<Executor> executor) const;

  /// Null until the engine of these tables is built.
  std::shared_ptr<StepLock> steps;

  /// Frees all rows that no view keeps; afterwards there are no tables.
  void drop() noexcept {
    if (none_) tables_ = std::move(none_);
  }

 private:
  std::shared_ptr<std::vector<StoredTable>> tables_;
  std::shared_ptr<std::vector<StoredTable>> none_;  ///< an empty list, allocated in advance
};

}  // namespace embertable::engine
