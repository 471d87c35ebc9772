#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "embertable/export.h"

namespace embertable {

/// A reference to something callable, for the length of a call. Two words, no heap.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT: any callable will do
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

/// One piece of ready work, as a worker receives it.
struct WorkItem {
  std::int64_t index = 0;
  std::int64_t next =
      -1;  ///< the item this worker will do after this one, or -1: a hint for prefetching
  std::int32_t worker =
      0;  ///< 0 <= worker < workers(); no two items of one worker of one `run` run at once
};

/// Runs the engine's parallel regions. Handed in by the caller or made by the engine; which worker
/// does which item, and in what order, never shows in a result.
class EMBERTABLE_API Executor {
 public:
  virtual ~Executor() = default;

  /// Workers that may run items at once, the caller of `run` among them; >= 1 and constant.
  virtual std::int32_t workers() const noexcept = 0;

  /// Calls body once for every index in [0, items), and returns when all are done. The body does
  /// not throw. Lower indices should start first. May be called from several threads at once, and
  /// from a body; workers are numbered in each call for itself, so scratch by worker belongs to one
  /// call. Allocates nothing. Throws StateError in a process forked from the one that made the
  /// executor.
  virtual void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) = 0;
};

/// A pool of threads - 1 persistent threads and the caller, who is worker 0. While a call runs,
/// another caller's items, or those of a body that calls `run` again, run on its own thread alone,
/// in order, as worker 0. Throws ValueError unless 1 <= threads <= 1024, IoError if the threads
/// cannot be had.
EMBERTABLE_API std::shared_ptr<Executor> make_thread_pool(std::int32_t threads);

/// Everything on the calling thread, in order.
EMBERTABLE_API std::shared_ptr<Executor> make_inline_executor();

}  // namespace embertable
