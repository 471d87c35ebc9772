#pragma once

#include <cstdint>

namespace embertable::jobs {

/// Bytes of memory that this process has now, and the most that it ever had; 0 where the system
/// does not tell.
struct MemoryUse {
  std::int64_t now = 0;
  std::int64_t most = 0;
};
MemoryUse memory_use();

/// Returns the bytes that this process may take besides: those that the machine has available, or
/// that its control group leaves. The largest number where the system does not tell.
std::int64_t available_memory();

}  // namespace embertable::jobs
