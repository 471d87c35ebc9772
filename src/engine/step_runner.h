#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/gradient_intake.h"
#include "engine/host_team.h"
#include "engine/schedule/progress.h"
#include "engine/schedule/reentrancy_guard.h"
#include "engine/schedule/schedule.h"
#include "engine/setup/setup.h"
#include "engine/table_store.h"

namespace embertable::engine {

/// Runs the forward and the update of steps on the engine's tables, one at a time. In a pipelined
/// engine an update may be pending until the next forward has run. Requires: the step lock is held,
/// except for `lock` and `shares`; hosts are in use, except for these two and `use`.
class StepRunner {
 public:
  StepRunner(const Setup& setup, TableStore& store, Schedule& schedule, Progress& progress);
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;
  ~StepRunner();

  /// Locks the step lock of an engine that can step. Throws StateError naming `call` if the engine
  /// is not built, has failed or was forked.
  std::unique_lock<ReentrancyGuard> lock(std::string_view call);

  /// The step lock of any engine.
  ReentrancyGuard& stepping() const { return steps_->lock(); }
  const std::shared_ptr<StepLock>& steps() const noexcept { return steps_; }

  /// `tables` are borrowed.
  std::unique_ptr<HostTeam> make_hosts(const Tables& tables);
  void use(std::unique_ptr<HostTeam> hosts) noexcept { hosts_ = std::move(hosts); }

  /// Looks up a queued step and runs the pending update: before the lookup if that must see all
  /// updates, else after it. If it throws, the step can be looked up again.
  void look_up_queued(Step& step, std::span<const std::span<float>> out);

  /// Looks up a step outside the queues, after the pending update.
  void look_up(Step& step, std::span<const std::span<float>> out);

  /// Accepts the gradients of the step that awaits them and updates the rows, now or as the pending
  /// update. If it throws before the update, nothing has changed; in the middle of the update, the
  /// engine has failed.
  void apply_queued(Schedule::Awaiting awaiting, GradientsOfReplica gradients);

  /// Does the same for a step outside the queues: updates now, after the pending update.
  void apply(Step& step, GradientsOfReplica gradients);

  /// Runs the pending update, if there is one.
  void flush();

  /// Drops it, and the sums of the last one: all rows become those of another step.
  void forget_last_step();

  /// Drops the newest `steps` queued steps, or all, and returns how many. Requires: the step lock
  /// is held.
  std::int64_t drop_queued(std::optional<std::int64_t> steps);

  /// After a restore of failed tables: drops the dequeued batches without gradients and the pending
  /// update.
  void recover(std::unique_ptr<HostTeam> hosts);

  /// Throws ValueError unless the table's rule is "none".
  GradientSumsOfTable gradient_sums(const Tables& tables, std::string_view table) const;

  /// Entries of rows named once that the last update set apart from buckets. For tests: that a step
  /// takes this way shows in no result.
  std::int64_t entries_set_apart(std::int64_t table) const;

  const StepStatistics& statistics() const noexcept { return statistics_; }

  /// By table: what the last update of host 0 named.
  std::span<const NamedShares> shares() const noexcept {
    return std::span(shares_).first(setup_.assembly.tables.size());
  }

  std::int64_t scratch_bytes() const;

 private:
  std::span<const std::span<float>> values_by_core(Step& step,
                                                   std::span<const std::span<float>> out);
  void forward(Step& step, std::span<const std::span<float>> out, Step* next);
  void undo_forward(Step& step) noexcept;
  std::vector<std::shared_ptr<Exchange>> make_exchanges() const;
  void update(Step& step);
  void count_lookups(Step& step) noexcept;
  void count_update(const Step& step) noexcept;

  const Setup& setup_;
  TableStore& store_;
  Schedule& schedule_;
  Progress& progress_;
  const std::shared_ptr<StepLock> steps_;
  std::vector<NamedShares> shares_;  ///< by host of this process and table; outlives hosts
  std::unique_ptr<HostTeam> hosts_;
  Step* pending_ = nullptr;       ///< its update waits for the next forward
  std::int64_t summed_step_ = 0;  ///< number of this object's last update; 0: none yet
  GradientIntake intake_;
  StepStatistics statistics_;
  const Step* looked_up_ = nullptr;            ///< the step that the statistics count
  std::vector<std::span<float>> core_values_;  ///< [cores * features], if replicas have several
};

}  // namespace embertable::engine
