#include "bench/baseline_kernels.h"

#include <immintrin.h>

#include "bench/cpu.h"

// The region that the compiler may use AVX-512 in; everything else stays plain x86-64.
#if defined(__clang__)
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,lzcnt,popcnt,prfchw"))), \
    apply_to = function)
#else
// gcc 12 is wrong about its own intrinsics (PR 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,bmi,bmi2,lzcnt,popcnt,prfchw")
#endif

namespace embertable::bench::avx512 {
// The first one is used by the others.
// clang-format off
#include "bench/baseline_row.inl"
#include "bench/baseline_gather.inl"
#include "bench/baseline_group.inl"
#include "bench/baseline_narrow.inl"
#include "bench/baseline_tiny.inl"
#include "bench/baseline_update.inl"
// clang-format on

template <int kDim>
constexpr BaselineKernels kKernels = {
    .narrow_tile = narrow_tile,
    .gather = gather<kDim>,
    .scatter = scatter,
    .unpack = unpack,
    .group = group<kDim>,
    .update = update<kDim>,
    .sum = sum<kDim>,
    .update_tiny = update_tiny<kDim>,
};
}  // namespace embertable::bench::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace embertable::bench {

const BaselineKernels* baseline_kernels(std::int32_t dim) {
  if (!has_avx512()) return nullptr;
  switch (dim) {
    case 16:
      return &avx512::kKernels<16>;
    case 32:
      return &avx512::kKernels<32>;
    case 64:
      return &avx512::kKernels<64>;
    case 256:
      return &avx512::kKernels<256>;
    default:
      return nullptr;
  }
}

}  // namespace embertable::bench
