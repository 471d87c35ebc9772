#include <assert.h>
#include <immintrin.h>
#include <limits.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_levels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#pragma GCC optimize("-O2")  // same as xxhash.h has for its own functions: only such are inlined
#endif
#endif

#define EMBERTABLE_LEVEL_NAMESPACE avx2
#define XXH_VECTOR XXH_AVX2
#include "base/hash_level.inl"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
