#include "engine/schedule/reentrancy_guard.h"

#include <utility>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

thread_local const AtWork* innermost = nullptr;

class MarkingExecutor final : public Executor {
 public:
  explicit MarkingExecutor(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {}

  std::int32_t workers() const noexcept override { return executor_->workers(); }

  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    executor_->run(items, [&](const WorkItem& item) {
      const AtWork here(*this);
      body(item);
    });
  }

 private:
  const std::shared_ptr<Executor> executor_;
};

[[noreturn]] void refuse() {
  throw StateError(
      "a function that the engine calls (a rate, a rule, a log, an initializer, an executor) must "
      "not call its queues, steps, rows, memory or build, got such a call");
}

}  // namespace

AtWork::AtWork(const Executor& executor) noexcept
    : executor_(executor), outer_(std::exchange(innermost, this)) {}

AtWork::~AtWork() { innermost = outer_; }

bool AtWork::is_for(const Executor& executor) noexcept {
  for (const AtWork* work = innermost; work; work = work->outer_)
    if (&work->executor_ == &executor) return true;
  return false;
}

std::shared_ptr<Executor> mark_workers(std::shared_ptr<Executor> executor) {
  return std::make_shared<MarkingExecutor>(std::move(executor));
}

void ReentrancyGuard::refuse_reentry() const {
  const bool is_held = owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  if (is_held || AtWork::is_for(executor_)) refuse();
}

}  // namespace embertable::engine
