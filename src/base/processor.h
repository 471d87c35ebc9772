#pragma once

#include <cstdint>

namespace embertable {

/// Instruction sets that code here is compiled for besides the baseline of x86-64.
enum class Instructions : std::uint8_t {
  kSse42,
  kAvx2,     ///< AVX2 with BMI, BMI2 and POPCNT
  kAvx512,   ///< AVX-512 F, BW, DQ and VL, and all of kAvx2
  kAvx512f,  ///< AVX-512 F alone
};

/// Returns whether the CPU has these instructions and the operating system keeps their registers.
/// Asks the CPU itself: not every compiler's library that answers __builtin_cpu_supports knows it.
bool processor_has(Instructions instructions) noexcept;

/// Processors that differ in how rows are best fetched.
enum class ProcessorKind : std::uint8_t { kOther, kIntel, kZen4 };

/// Returns the kind of the CPU. Zen 4, AMD's fourth generation of EPYC, is told from Zen 3 by
/// AVX-512: where a hypervisor or the operating system hides that, it is another.
ProcessorKind processor_kind() noexcept;

}  // namespace embertable
