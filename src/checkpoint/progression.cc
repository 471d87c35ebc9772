#include "checkpoint/progression.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace embertable::checkpoint {
namespace {

/// Returns value / divisor, rounded up. Requires: divisor > 0.
std::int64_t divide_up(std::int64_t value, std::int64_t divisor) noexcept {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

/// Returns x with value * x = 1 (mod modulus) and 0 <= x < modulus. Requires: the two have no
/// common factor.
std::int64_t inverse(std::int64_t value, std::int64_t modulus) noexcept {
  std::int64_t r = modulus, next_r = value % modulus, x = 0, next_x = 1;
  while (next_r != 0) {
    const std::int64_t quotient = r / next_r;
    r = std::exchange(next_r, r - quotient * next_r);
    x = std::exchange(next_x, x - quotient * next_x);
  }
  return x < 0 ? x + modulus : x % modulus;
}

}  // namespace

Overlap overlap(const Progression& a, const Progression& b) noexcept {
  if (a.count == 0 || b.count == 0) return {};
  const std::int64_t common = std::gcd(a.step, b.step);
  const std::int64_t distance = b.first - a.first;
  if (distance % common != 0) return {};

  // Indices x of `a` that meet b's progression if it is endless both ways: x = start (mod period).
  const std::int64_t period = b.step / common;
  const std::int64_t residue = ((distance / common) % period + period) % period;
  const auto start = static_cast<std::int64_t>(static_cast<__int128>(residue) *
                                               inverse(a.step / common, period) % period);

  // Keep only the common rows within both counts.
  const std::int64_t low = std::max<std::int64_t>(0, divide_up(distance, a.step));
  const std::int64_t past_b = b[b.count - 1] - a.first;
  if (past_b < 0) return {};
  const std::int64_t high = std::min(a.count - 1, past_b / a.step);
  const std::int64_t x = low + ((start - low) % period + period) % period;
  if (x > high) return {};
  const std::int64_t count = (high - x) / period + 1;
  return {{x, period, count}, {(a[x] - b.first) / b.step, a.step / common, count}};
}

}  // namespace embertable::checkpoint
