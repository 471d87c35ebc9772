#include "kernels/level.h"

#include <cstdlib>
#include <string>

#include "base/processor.h"
#include "embertable/errors.h"

namespace embertable {

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
  if (processor_has(Instructions::kAvx2)) levels.push_back(SimdLevel::kAvx2);
  if (processor_has(Instructions::kAvx512)) levels.push_back(SimdLevel::kAvx512);
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
