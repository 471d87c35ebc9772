// XXH3 with the vectors of one level. A .cc includes this once, in a region where the compiler may
// use them, after all headers that xxhash.h includes, with XXH_VECTOR and
// EMBERTABLE_LEVEL_NAMESPACE defined. The code that it uses from xxhash.h becomes part of the one
// function: no symbol with wide code is outside the namespace.

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace embertable::EMBERTABLE_LEVEL_NAMESPACE {

[[gnu::flatten]] void xxh3_update(void* state, const void* data, std::size_t bytes) noexcept {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

}  // namespace embertable::EMBERTABLE_LEVEL_NAMESPACE
