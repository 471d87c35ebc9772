#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "jobs/ranking.h"

namespace embertable::jobs {

/// Draws items that a sample does not have: uniform, and again where one is the positive or in the
/// sample's list of items to avoid, up to 32 times. Who has nearly everything gets what comes last.
class NegativeSampler {
 public:
  static constexpr std::uint64_t kMostDraws = 32;

  /// `avoided`, each list rising, is borrowed; empty: only the positive is avoided.
  NegativeSampler(std::int64_t items, ListsView avoided) : items_(items), avoided_(avoided) {
    for (std::size_t list = 0; list + 1 < avoided.splits.size(); ++list)
      add_sieve(avoided[static_cast<std::int64_t>(list)]);
  }

  /// `random`: of the sample, so that its negatives hang on nothing else.
  void draw(const RandomRow& random, std::int64_t list, std::int32_t positive,
            std::span<std::int32_t> out) const noexcept {
    for (std::size_t n = 0; n < out.size(); ++n) {
      std::uint64_t draws = 0;
      do {
        const std::uint64_t bits = random.bits(n, draws);
        out[n] = static_cast<std::int32_t>(uniform_below(bits, static_cast<std::uint64_t>(items_)));
      } while ((out[n] == positive || avoids(list, out[n])) && ++draws < kMostDraws);
    }
  }

  /// A list to avoid that is needed soon: where its sieve is while it is `far`, later the sieve.
  /// Not a call: gcc drops those of functions that do nothing else.
  [[gnu::always_inline]] void prefetch(std::int64_t list, bool far) const noexcept {
    if (sieves_.empty()) return;
    const Sieve* const sieve = sieves_.data() + list;
    __builtin_prefetch(far ? static_cast<const void*>(sieve) : bits_.data() + sieve->first);
  }

 private:
  /// Bits that most of the items that are not in a list have clear, so that only few are sought in
  /// the list itself. 8 to 16 bits for each item of the list.
  struct Sieve {
    std::uint32_t first;  ///< word in bits_
    std::uint32_t shift;  ///< 32 - log2(bits)
  };

  static std::uint32_t bit_of(Sieve sieve, std::int32_t item) noexcept {
    return (static_cast<std::uint32_t>(item) * 0x9e3779b1u) >> sieve.shift;
  }

  void add_sieve(std::span<const std::int32_t> list) {
    const auto words = static_cast<std::uint32_t>(
        std::min<std::size_t>(std::bit_ceil((list.size() + 7) / 8), 1u << 26));
    const Sieve sieve = {static_cast<std::uint32_t>(bits_.size()),
                         static_cast<std::uint32_t>(26 - std::countr_zero(words))};
    bits_.resize(bits_.size() + words);
    for (const std::int32_t item : list) {
      const std::uint32_t bit = bit_of(sieve, item);
      bits_[sieve.first + bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
    sieves_.push_back(sieve);
  }

  bool avoids(std::int64_t list, std::int32_t item) const noexcept {
    if (sieves_.empty()) return false;
    const Sieve sieve = sieves_[static_cast<std::size_t>(list)];
    const std::uint32_t bit = bit_of(sieve, item);
    if (((bits_[sieve.first + bit / 64] >> (bit % 64)) & 1) == 0) return false;
    return holds(avoided_[list], item);
  }

  /// Without branches that nobody can foresee.
  static bool holds(std::span<const std::int32_t> rising, std::int32_t item) noexcept {
    const std::int32_t* at = rising.data();
    for (std::size_t left = rising.size(); left > 1;) {
      const std::size_t half = left / 2;
      at += static_cast<std::size_t>(at[half - 1] < item) * half;
      left -= half;
    }
    return !rising.empty() && *at == item;
  }

  std::int64_t items_;
  ListsView avoided_;
  std::vector<Sieve> sieves_;  ///< by list
  std::vector<std::uint64_t> bits_;
};

}  // namespace embertable::jobs
