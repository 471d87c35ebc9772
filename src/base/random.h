#pragma once

#include <cstdint>
#include <string_view>

namespace embertable {

/// Maps 64 bits to 64 bits, one to one; each bit of the result depends on each bit of x. Source:
/// Stafford's 13th mixer, the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;  ///< 2^64 / phi

/// Returns a seed that depends on both.
constexpr std::uint64_t mix_seeds(std::uint64_t a, std::uint64_t b) noexcept {
  return mix_bits(mix_bits(a + kGoldenRatio) + b);
}

/// Returns the random stream of a named table or slot; it differs by seed and by name. FNV-1a of
/// the name, mixed with the seed.
std::uint64_t stream_of(std::uint64_t seed, std::string_view name) noexcept;

/// Random numbers of one row: SplitMix64 with a start and a step of the row's own.
class RandomRow {
 public:
  constexpr RandomRow(std::uint64_t stream, std::uint64_t row) noexcept
      : start_(mix_seeds(stream, row)), step_(mix_bits(start_ + kGoldenRatio) | 1) {}

  /// Returns 64 bits that depend only on stream, row, column < 2^32 and draw < 2^32. `draw` is for
  /// callers that need several numbers per element.
  constexpr std::uint64_t bits(std::uint64_t column, std::uint64_t draw = 0) const noexcept {
    return mix_bits(start_ + step_ * (column + 1 + (draw << 32)));
  }

 private:
  std::uint64_t start_;
  std::uint64_t step_;
};

constexpr std::uint64_t random_bits(std::uint64_t stream, std::uint64_t row, std::uint64_t column,
                                    std::uint64_t draw = 0) noexcept {
  return RandomRow(stream, row).bits(column, draw);
}

/// Uniform in [0, 1), a multiple of 2^-24: exact.
constexpr float uniform_float(std::uint64_t bits) noexcept {
  return static_cast<float>(static_cast<std::int32_t>(bits >> 40)) * 0x1p-24f;
}

/// Uniform in [0, 1), a multiple of 2^-53: exact.
constexpr double uniform_double(std::uint64_t bits) noexcept {
  return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53;
}

/// Uniform in [0, bound), with a bias of at most bound / 2^64. Requires: bound >= 1.
constexpr std::uint64_t uniform_below(std::uint64_t bits, std::uint64_t bound) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits} * bound) >> 64);
}

/// A permutation of 0..n-1 that the seed chooses, computed without a list: a Feistel network on the
/// bits of i, repeated until the result is in range (at most twice on average). Requires: 0 <= n <
/// 2^63.
class Permutation {
 public:
  Permutation(std::int64_t n, std::uint64_t seed) noexcept;
  std::int64_t size() const noexcept { return n_; }

  /// Maps [0, n) to itself, one to one. Requires: 0 <= i < n.
  std::int64_t operator[](std::int64_t i) const noexcept;

 private:
  static constexpr int kRounds = 8;
  std::uint64_t walk(std::uint64_t x) const noexcept;
  std::int64_t n_;
  int low_bits_;
  int high_bits_;
  std::uint64_t keys_[kRounds];
};

}  // namespace embertable
