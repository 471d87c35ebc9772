#include "base/cache.h"

#include <unistd.h>

#include <algorithm>

namespace embertable {

std::int64_t quarter_of_level2_cache() noexcept {
  static const std::int64_t bytes =
      std::clamp<std::int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE) / 4, 64 << 10, 512 << 10);
  return bytes;
}

}  // namespace embertable
