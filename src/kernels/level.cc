#include "kernels/level.h"

#include <cstdlib>
#include <string>

#include "embertable/errors.h"

namespace embertable {
namespace {

// __builtin_cpu_supports asks the operating system too: it reads XCR0 before it says yes to AVX or
// AVX-512.
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

std::string_view to_string(SimdLevel level) noexcept {
  switch (level) {
    case SimdLevel::kAvx512:
      return "avx512";
    case SimdLevel::kAvx2:
      return "avx2";
    default:
      return "scalar";
  }
}

std::vector<SimdLevel> usable_levels() {
  std::vector<SimdLevel> levels = {SimdLevel::kScalar};
  if (has_avx2()) levels.push_back(SimdLevel::kAvx2);
  if (has_avx512()) levels.push_back(SimdLevel::kAvx512);
  return levels;
}

SimdLevel simd_level() {
  const std::vector<SimdLevel> levels = usable_levels();
  const char* wanted = std::getenv("EMBERTABLE_SIMD");
  if (wanted == nullptr || *wanted == '\0') return levels.back();
  std::string names;
  for (const SimdLevel level : levels) {
    if (to_string(level) == wanted) return level;
    names += names.empty() ? "" : ", ";
    names += to_string(level);
  }
  throw ValueError("EMBERTABLE_SIMD: must be a level that this machine can run (" + names +
                   "), got '" + wanted + "'");
}

}  // namespace embertable
