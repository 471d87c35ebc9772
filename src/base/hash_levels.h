#pragma once

#include <cstddef>

// XXH3_128bits_update for each level. The state may have been begun by any of xxhash.h's own vector
// codes: every level gives the same state and digest. The CPU must have the instructions.
namespace embertable::avx2 {
void xxh3_update(void* state, const void* data, std::size_t bytes) noexcept;
}
namespace embertable::avx512 {
void xxh3_update(void* state, const void* data, std::size_t bytes) noexcept;
}
