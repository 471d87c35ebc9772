#include "base/run_all.h"

#include <exception>
#include <mutex>

#include "base/float_environment.h"

namespace embertable {

void run_all(Executor& executor, std::int64_t items, FunctionRef<void(const WorkItem&)> body) {
  std::mutex failing;
  std::int64_t failed = items;
  std::exception_ptr error;
  executor.run(items, [&](const WorkItem& item) {
    const FloatEnvironment ours;
    try {
      body(item);
    } catch (...) {
      const std::lock_guard lock(failing);
      if (item.index < failed) failed = item.index, error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

}  // namespace embertable
