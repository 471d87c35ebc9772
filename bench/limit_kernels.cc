#include "bench/limit_kernels.h"

#include <stdexcept>
#include <string>

#include "bench/cpu.h"

namespace embertable::bench::x86_64 {
#include "bench/limit_loops.inl"
}

// The region that the compiler may use AVX-512 in.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prfchw"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prfchw")
#endif
namespace embertable::bench::avx512 {
#include "bench/limit_loops.inl"
}
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace embertable::bench {

const LimitKernels& limit_kernels(std::int32_t dim) {
  const bool wide = has_avx512();
  switch (dim) {
    case 16:
      return wide ? avx512::kKernels<16> : x86_64::kKernels<16>;
    case 32:
      return wide ? avx512::kKernels<32> : x86_64::kKernels<32>;
    case 64:
      return wide ? avx512::kKernels<64> : x86_64::kKernels<64>;
    case 256:
      return wide ? avx512::kKernels<256> : x86_64::kKernels<256>;
    default:
      throw std::invalid_argument("dim must be 16, 32, 64 or 256, got " + std::to_string(dim));
  }
}

}  // namespace embertable::bench
