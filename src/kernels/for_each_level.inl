// Includes the file that EMBERTABLE_LEVEL_BODY names once for each SIMD level: in the namespaces
// `scalar`, `avx2` and `avx512` of embertable, after the vectors of that level (simd_*.inl), in a
// region where the compiler may use its instructions. Everything outside of the regions stays plain
// x86-64.
//
//     #include "kernels/update.h"                       // all headers first: a body includes no .h
//     #define EMBERTABLE_LEVEL_BODY "kernels/narrow.inl"
//     #include "kernels/for_each_level.inl"             // once per body
//     ... EMBERTABLE_AT_LEVEL(level, narrow) ...        // scalar::, avx2:: or avx512::narrow
//
// What a body defines is local to its unit. It instantiates no template of the standard library and
// holds no lambda; it may include others that are part of one, such as kernels/rounding.inl. A
// unit of several sources has the vectors once, and their bodies share no names.
//
// EMBERTABLE_LEVEL is 0, 1 or 2, as in SimdLevel. Where EMBERTABLE_WITHOUT_AVX512 is defined, as
// for code that only this machine runs and that has no such instructions, `avx512` names `avx2`.
// Where EMBERTABLE_SCALAR_ALONE is, as for a test to which levels make no difference, both name
// `scalar`.

#include <immintrin.h>

#include <cstdint>

#include "base/assert.h"
#include "kernels/level.h"

#if !defined(__clang__)
#pragma GCC diagnostic push
// gcc 12 warns about its own intrinsics (PR 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define EMBERTABLE_INLINE [[gnu::always_inline]] inline

/// Unrolls a loop over the vectors of a row, so that they are kept in registers.
#if defined(__clang__)
#define EMBERTABLE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EMBERTABLE_UNROLL _Pragma("GCC unroll 16")
#endif

#define EMBERTABLE_AT_LEVEL(level, ...)                              \
  ((level) == ::embertable::SimdLevel::kAvx512 ? avx512::__VA_ARGS__ \
   : (level) == ::embertable::SimdLevel::kAvx2 ? avx2::__VA_ARGS__   \
                                               : scalar::__VA_ARGS__)

namespace embertable::scalar {
namespace {
#define EMBERTABLE_LEVEL 0
#if !defined(EMBERTABLE_HAS_VECTORS)
#include "kernels/simd_scalar.inl"
#endif
#include EMBERTABLE_LEVEL_BODY
#undef EMBERTABLE_LEVEL
}  // namespace
}  // namespace embertable::scalar

#if defined(EMBERTABLE_SCALAR_ALONE)
namespace embertable {
namespace avx2 = scalar;
namespace avx512 = scalar;
}  // namespace embertable
#else

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#endif
namespace embertable::avx2 {
namespace {
#define EMBERTABLE_LEVEL 1
#if !defined(EMBERTABLE_HAS_VECTORS)
#include "kernels/simd_avx2.inl"
#endif
#include EMBERTABLE_LEVEL_BODY
#undef EMBERTABLE_LEVEL
}  // namespace
}  // namespace embertable::avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(EMBERTABLE_WITHOUT_AVX512)
namespace embertable {
namespace avx512 = avx2;
}
#else
#if defined(__clang__)
#pragma clang attribute push(                                                                  \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,prfchw"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,prfchw")
#endif
namespace embertable::avx512 {
namespace {
#define EMBERTABLE_LEVEL 2
#if !defined(EMBERTABLE_HAS_VECTORS)
#include "kernels/simd_avx512.inl"
#endif
#include EMBERTABLE_LEVEL_BODY
#undef EMBERTABLE_LEVEL
}  // namespace
}  // namespace embertable::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

#endif

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#undef EMBERTABLE_LEVEL_BODY
#define EMBERTABLE_HAS_VECTORS
