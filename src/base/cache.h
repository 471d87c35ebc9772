#pragma once

#include <cstdint>

namespace embertable {

/// A quarter of a core's second-level cache, 64 to 512 KiB, or 256 KiB where the system does not
/// know it: what the rows and slots of a bucket should fill of it while gradients pass through.
std::int64_t quarter_of_level2_cache() noexcept;

}  // namespace embertable
