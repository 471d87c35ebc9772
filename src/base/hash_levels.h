#pragma once

#include <cstddef>

// XXH3_128bits_update on a state that any of xxhash.h's own vectors may have begun: the same state
// and digest at every level. The CPU must have the instructions.
namespace embertable::avx2 {
void xxh3_update(void* state, const void* data, std::size_t bytes) noexcept;
}
namespace embertable::avx512 {
void xxh3_update(void* state, const void* data, std::size_t bytes) noexcept;
}
