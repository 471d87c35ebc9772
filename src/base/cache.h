#pragma once

#include <cstdint>

namespace embertable {

/// Returns a quarter of a core's second-level cache, 64 to 512 KiB, or 256 KiB if the system does
/// not report its size. The rows and slots of a bucket should fit into it while their gradients are
/// applied.
std::int64_t quarter_of_level2_cache() noexcept;

/// Returns whether rows that are needed later had better be fetched into a core's second-level
/// cache than into the first. True on Intel's processors and AMD's Zen 4: there each line on its
/// way to the first level holds one of few buffers, and with all of them taken a core waits (steps
/// take 0.75 to 0.90 of the time where rows are waited for). On AMD's Zen 5 it makes no difference.
bool fetches_through_level2() noexcept;

}  // namespace embertable
