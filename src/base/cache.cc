#include "base/cache.h"

#include <unistd.h>

#include <algorithm>

#include "base/processor.h"

namespace embertable {

std::int64_t quarter_of_level2_cache() noexcept {
  static const std::int64_t bytes = [] {
    const std::int64_t level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return level2 <= 0 ? 256 << 10 : std::clamp<std::int64_t>(level2 / 4, 64 << 10, 512 << 10);
  }();
  return bytes;
}

bool fetches_through_level2() noexcept { return processor_kind() != ProcessorKind::kOther; }

}  // namespace embertable
