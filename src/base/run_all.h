#pragma once

#include <cstdint>

#include "embertable/executor.h"

namespace embertable {

/// Calls body(item) for all items on the executor's workers, which must not throw themselves, in
/// the library's float environment. All of them run; then throws what the lowest item threw.
void run_all(Executor& executor, std::int64_t items, FunctionRef<void(const WorkItem&)> body);

}  // namespace embertable
