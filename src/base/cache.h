#pragma once

#include <cstdint>

namespace embertable {

/// A quarter of a core's second-level cache, 64 to 512 KiB: what one array may fill of it while
/// others pass through.
std::int64_t quarter_of_level2_cache() noexcept;

}  // namespace embertable
