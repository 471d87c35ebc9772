#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/random.h"

namespace embertable::slow {

inline std::uint32_t bits_of(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float float_of(std::uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

/// x rounded to bfloat16, to nearest even.
inline float nearest_bfloat16(float x) {
  if (x != x) return x;
  const std::uint32_t bits = bits_of(x), low = bits % 65536, high = bits - low;
  const bool up = low > 32768 || (low == 32768 && (high >> 16) % 2 == 1);
  return float_of(up ? high + 65536 : high);
}

/// One column of docs/optimizers.md, "Rounding of bfloat16 rows": what a row that takes a step is
/// rounded with.
struct Rounding {
  std::uint64_t seed = 0;
  std::string_view table;
  std::uint64_t step = 1;
  std::uint64_t row = 0;
  std::uint64_t occurrence = 0;

  std::uint32_t bits(std::uint32_t column) const {
    const std::uint64_t of_table = stream_of(mix_seeds(seed, 1), table);
    const std::uint64_t key = mix_bits(mix_seeds(of_table, step) + row * 0x9e3779b97f4a7c15u +
                                       occurrence * 0xd1b54a32d192ed03u);
    const std::uint32_t low = key & 0xffffffffu, high = key >> 32;
    const std::uint32_t group = column / 32, within = column % 32;
    std::uint32_t x = low + (group * 16 + within % 16) * 0x9e3779b9u;
    x = x ^ (x >> 16);
    x = x * (high | 1u);
    x = x ^ (x >> 15);
    return within < 16 ? x % 65536 : x / 65536;
  }
  float of(float x, std::uint32_t column) const {
    if (x != x) return x;
    const std::uint32_t low = bits_of(x) % 65536, high = bits_of(x) - low;
    return float_of(low + bits(column) >= 65536 ? high + 65536 : high);
  }

  /// Rounds a number between two limits: takes the other neighbour where one is beyond a limit.
  float between(float x, std::uint32_t column, float least, float most) const {
    const float rounded = of(x, column);
    if (rounded >= least && rounded <= most) return rounded;
    if (x != x || bits_of(x) % 65536 == 0) return rounded;
    const std::uint32_t towards_zero = bits_of(x) / 65536 * 65536;
    return float_of(bits_of(rounded) == towards_zero ? towards_zero + 65536 : towards_zero);
  }
};

}  // namespace embertable::slow
