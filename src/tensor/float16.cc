#include <bit>
#include <cstdint>

#include "base/bfloat16.h"
#include "embertable/variables/tensor.h"

namespace embertable {
namespace {

constexpr std::uint32_t kInfinityBits = 0x7f800000;

/// Returns x / 2^shift, rounded to nearest even.
std::uint32_t rounded_shift(std::uint32_t x, int shift) {
  const std::uint32_t half = std::uint32_t{1} << (shift - 1);
  return (x + (half - 1) + ((x >> shift) & 1)) >> shift;
}

std::uint16_t float16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t result = 0x7c00;  // infinity
  if (magnitude > kInfinityBits) {
    result = 0x7e00 | ((magnitude >> 13) & 0x3ff);  // the payload that fits
  } else if (magnitude >= 0x38800000) {             // 2^-14: normal
    // From 65520 on, the carry of the rounding ends in infinity.
    const std::uint32_t normal = rounded_shift(magnitude - (112u << 23), 13);
    result = normal < 0x7c00 ? normal : 0x7c00;
  } else if (magnitude >= 0x33000000) {  // 2^-25: half of the least denormal
    const int exponent = static_cast<int>(magnitude >> 23);
    result = rounded_shift((magnitude & 0x7fffff) | 0x800000, 126 - exponent);
  } else {
    result = 0;
  }
  return static_cast<std::uint16_t>(sign | result);
}

float float_of_float16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float denormal = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(denormal));
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

}  // namespace

BFloat16::BFloat16(float x) noexcept : bits(rounded_to_nearest(x)) {}
Float16::Float16(float x) noexcept : bits(float16_bits(x)) {}
Float16::operator float() const noexcept { return float_of_float16(bits); }

}  // namespace embertable
