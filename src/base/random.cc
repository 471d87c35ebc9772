#include "base/random.h"

#include <algorithm>
#include <bit>

namespace embertable {
namespace {

constexpr std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

std::uint64_t stream_of(std::uint64_t seed, std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix_seeds(seed, hash);
}

Permutation::Permutation(std::int64_t n, std::uint64_t seed) noexcept : n_(n) {
  const int bits = std::max(2, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n) - 1)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  for (int round = 0; round < kRounds; ++round) {
    keys_[round] = random_bits(seed, 0, static_cast<std::uint64_t>(round));
  }
}

/// Changes the halves in turn, each by a function of the other. Each round can be undone, so the
/// whole maps one to one.
std::uint64_t Permutation::walk(std::uint64_t x) const noexcept {
  std::uint64_t low = x & low_mask(low_bits_);
  std::uint64_t high = x >> low_bits_;
  for (int round = 0; round < kRounds; round += 2) {
    high ^= mix_bits(low + keys_[round]) & low_mask(high_bits_);
    low ^= mix_bits(high + keys_[round + 1]) & low_mask(low_bits_);
  }
  return high << low_bits_ | low;
}

std::int64_t Permutation::operator[](std::int64_t i) const noexcept {
  auto x = static_cast<std::uint64_t>(i);
  do {
    x = walk(x);
  } while (x >= static_cast<std::uint64_t>(n_));
  return static_cast<std::int64_t>(x);
}

}  // namespace embertable
