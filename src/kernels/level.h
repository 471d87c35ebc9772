#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace embertable {

/// Instruction sets that kernels are compiled for. Every level gives the same bits.
enum class SimdLevel : std::uint8_t { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };

/// "scalar", "avx2", "avx512".
std::string_view to_string(SimdLevel level) noexcept;

/// Returns the levels that this CPU and operating system can run, rising; kScalar is always among
/// them.
std::vector<SimdLevel> usable_levels();

/// Returns the highest usable level, or the one that EMBERTABLE_SIMD names. Throws ValueError
/// naming the variable if its value is not a level or not usable here.
SimdLevel simd_level();

}  // namespace embertable
