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

}  // namespace embertable::jobs
