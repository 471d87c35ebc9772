#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string_view>

#include "checkpoint/reader.h"
#include "engine/schedule/progress.h"
#include "engine/schedule/reentrancy_guard.h"
#include "engine/setup/setup.h"
#include "engine/tables.h"

namespace embertable::engine {

/// Owns the tables of an engine: makes, restores and shows them. The tables of an accelerated
/// engine belong to its strategy once it is built; the strategy may drop them or hold those of
/// another engine.
class TableStore {
 public:
  explicit TableStore(const Setup& setup) : setup_(setup), building_(*setup.executor) {}

  ~TableStore();

  /// Leaves the strategy free if it holds these tables.
  void leave_strategy() noexcept;

  /// Excludes builds, first enqueues and restores from each other.
  ReentrancyGuard& building() const { return building_; }

  bool built() const noexcept { return built_; }

  /// Returns the tables of an engine that was restored and is not built, else null. Requires:
  /// `building` is locked.
  Tables* restored() const noexcept { return built_ ? nullptr : tables_.get(); }
  void require_built(std::string_view call) const;

  /// Throws StateError if the strategy holds the tables of a built engine.
  void require_free_strategy() const;

  /// Returns the tables that a build starts with: those of an earlier restore, else new ones with
  /// their first values.
  std::shared_ptr<Tables> prepare() const;

  /// Makes these the tables of the strategy. Throws as require_free_strategy: another engine may
  /// have been built since then.
  void claim_strategy(const std::shared_ptr<Tables>& tables) const;

  /// Completes the build with these tables, which the strategy of an accelerated engine holds.
  void adopt(std::shared_ptr<Tables> tables) noexcept;

  /// Builds a plain engine, if it is not built. Requires: `building` is not locked.
  void build_plain();

  /// Returns the engine's tables. Throws StateError if the strategy no longer holds them.
  Tables& own() const;

  /// Returns the tables that the strategy holds, which may be those of a later engine. Throws
  /// StateError if there are none, or if they are another engine's and have other variables.
  std::shared_ptr<Tables> held(std::string_view call) const;

  bool owns(const Tables& tables) const noexcept { return &tables == tables_.get(); }

  /// Returns every table of a plain engine by its configuration.
  std::map<TablePtr, TableView> views() const;

  /// Adds an entry for each variable.
  void report(MemoryReport& report) const;

  /// Callbacks of a restore into existing tables.
  struct RestoreEvents {
    /// Everything has been checked; may throw. `all`: every variable is restored.
    FunctionRef<void(bool all)> before_rows_change;
    FunctionRef<void()> recovered;  ///< tables that had failed are whole again
  };

  /// Restores into existing tables, or makes them. Requires: `building` is locked, no step runs.
  /// Throws as Embedding::restore.
  RestoreReport restore(const checkpoint::StepSource& source, const RestoreOptions& options,
                        Progress& progress, const RestoreEvents& events);

 private:
  std::shared_ptr<Tables> held() const;

  const Setup& setup_;
  std::shared_ptr<Tables> tables_;
  std::atomic<bool> built_ = false;
  mutable ReentrancyGuard building_;
};

}  // namespace embertable::engine
