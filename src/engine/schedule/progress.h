#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace embertable::engine {

/// The number of steps that tables have taken. Requires: the step lock is held, except to read
/// `taken`.
class StepCount {
 public:
  /// Training batches whose gradients have been accepted.
  std::int64_t taken() const noexcept { return taken_; }

  /// Returns the number of the step after those. Throws StateError where steps end.
  std::int64_t next() const;
  void count_taken() noexcept { ++taken_; }

  /// Updates of rows: one less than `taken` while an update is pending.
  std::int64_t updates() const noexcept { return updates_; }
  void count_update() noexcept { ++updates_; }

  /// Counts a step whose update follows its gradients at once.
  void count_step() noexcept { ++taken_, ++updates_; }

  /// Sets the step to which the tables were restored.
  void set(std::int64_t step) noexcept { taken_ = updates_ = step; }

  /// Forgets a batch whose update was lost.
  void drop_taken() noexcept { taken_ = updates_; }

 private:
  std::atomic<std::int64_t> taken_ = 0;
  std::int64_t updates_ = 0;
};

/// Has the count of an engine's steps, and remembers whether one failed in its middle. A failed
/// engine refuses steps until a restore. Thread-safe, but for the count.
class Progress {
 public:
  /// `stop` is called with the reason when the engine fails, to wake threads that wait for a step;
  /// `resume` when it has recovered.
  explicit Progress(std::function<void(const std::string&)> stop = {},
                    std::function<void()> resume = {});

  StepCount& steps() const noexcept { return *steps_; }

  /// The same for tables that may outlive the engine.
  const std::shared_ptr<StepCount>& shared_steps() const noexcept { return steps_; }

  /// Throws StateError naming `call` if the engine has failed.
  void require_not_failed(std::string_view call) const;

  /// When and why the engine failed; empty if it has not.
  std::string failure() const;

  void fail(std::string when_and_why);
  void fail_in_step(const char* why) { fail(std::string("in an earlier step: ") + why); }

  /// Runs a change that cannot be undone; if it throws, the engine has failed.
  template <class Change>
  void fail_if_thrown(Change change) {
    try {
      change();
    } catch (const std::exception& error) {
      fail_in_step(error.what());
      throw;
    } catch (...) {
      fail_in_step("unknown error");
      throw;
    }
  }

  /// Ends a failure: all tables hold one whole step again. A batch whose update was lost no longer
  /// counts.
  void recover();

 private:
  const std::function<void(const std::string&)> stop_;
  const std::function<void()> resume_;
  const std::shared_ptr<StepCount> steps_ = std::make_shared<StepCount>();
  mutable std::mutex mutex_;
  std::string failure_;
};

}  // namespace embertable::engine
