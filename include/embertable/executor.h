#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "embertable/version.h"

namespace embertable {

/// Refers to something callable, which must outlive the reference. It has two words and allocates
/// nothing.
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

/// One piece of ready work that a worker receives.
struct WorkItem {
  /// Index of the item, 0 <= index < items.
  std::int64_t index = 0;

  /// The worker's next item, or -1 if it is not known: a hint for prefetching.
  std::int64_t next = -1;

  /// Number of the worker, 0 <= worker < workers(). No worker of one `run` runs two items at once.
  std::int32_t worker = 0;
};

/// Runs the engine's parallel regions. Supplied by the caller or made by the engine; which worker
/// does which item, and in what order, never shows in a result.
class EMBERTABLE_API Executor {
 public:
  virtual ~Executor() = default;

  /// Returns the number of workers that may run items at once, the caller of `run` among them; >= 1
  /// and constant.
  virtual std::int32_t workers() const noexcept = 0;

  /// Calls body once for every index in [0, items), and returns when all are done. Requires: the
  /// body does not throw. Lower indices should start first. Callable from several threads at once,
  /// and from a body; each call numbers its workers by itself, so scratch by worker belongs to one
  /// call. Allocates nothing. One with threads throws StateError in a process forked from the one
  /// that made it.
  virtual void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) = 0;
};

/// Makes a pool of threads - 1 persistent threads and the caller, who is worker 0. While a call
/// runs, the items of another caller, or of a body that calls `run` again, run on the thread of
/// that call alone, in order, as worker 0. Throws ValueError unless 1 <= threads <= 1024, IoError
/// if the threads cannot be created.
EMBERTABLE_API std::shared_ptr<Executor> make_thread_pool(std::int32_t threads);

/// Makes an executor that runs everything on the calling thread, in order.
EMBERTABLE_API std::shared_ptr<Executor> make_inline_executor();

}  // namespace embertable
