#pragma once

#include <memory>
#include <mutex>

#include "base/fork_guard.h"
#include "engine/tables.h"

namespace embertable::engine {

/// The tables that a strategy holds: those of the engine that is built on it, or none. Thread-safe,
/// since engines of several threads may share a strategy.
class HeldTables {
 public:
  std::shared_ptr<Tables> get() const {
    const std::lock_guard lock(mutex_);
    return tables_;
  }

  /// Holds these tables. Returns false, and changes nothing, if there are tables already.
  bool take(const std::shared_ptr<Tables>& tables) {
    const std::lock_guard lock(mutex_);
    if (tables_) return false;
    tables_ = tables;
    return true;
  }

  /// Lets go of these tables, if they are the ones.
  void release(const std::shared_ptr<Tables>& tables) noexcept {
    if (home_.forked()) return;  // another thread of the parent may have held the lock
    const std::lock_guard lock(mutex_);
    if (tables_ == tables) tables_.reset();
  }

  /// Frees the rows and lets go of the tables. Throws StateError from within a function that their
  /// engine calls, and in a forked process.
  void drop() {
    home_.require_same_process("strategy: initialize");
    const std::shared_ptr<Tables> tables = get();
    if (!tables) return;
    std::unique_lock<ReentrancyGuard> no_step;
    if (tables->steps) no_step = std::unique_lock(tables->steps->lock());
    tables->drop();  // engines hold on to what is left
    release(tables);
  }

 private:
  const ForkGuard home_;
  mutable std::mutex mutex_;
  std::shared_ptr<Tables> tables_;
};

}  // namespace embertable::engine
