#pragma once

#include <cstdint>

namespace embertable {

/// Returns a quarter of a core's second-level cache, 64 to 512 KiB, or 256 KiB if the system does
/// not report its size. The rows and slots of a bucket should fit into it while their gradients are
/// applied.
std::int64_t quarter_of_level2_cache() noexcept;

}  // namespace embertable
