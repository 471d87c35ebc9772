#pragma once

namespace embertable::bench {

/// Whether the CPU has the parts of AVX-512 that the benchmark's wide loops need: F, BW, DQ, VL.
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace embertable::bench
