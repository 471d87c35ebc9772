#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/random.h"
#include "jobs/ranking.h"

namespace embertable::jobs {

/// Draws items that a sample does not have: uniform, and again where one is the positive or in the
/// sample's list of items to avoid, up to 32 times. Who has nearly everything gets what comes last.
class NegativeSampler {
 public:
  static constexpr std::uint64_t kMostDraws = 32;

  /// `avoided` is borrowed; empty: only the positive is avoided.
  NegativeSampler(std::int64_t items, ListsView avoided) : items_(items), avoided_(avoided) {}

  /// `random`: of the sample, so that its negatives hang on nothing else.
  void draw(const RandomRow& random, std::int64_t list, std::int32_t positive,
            std::span<std::int32_t> out) const noexcept {
    const std::span<const std::int32_t> avoided = avoided_[list];
    for (std::size_t n = 0; n < out.size(); ++n) {
      std::uint64_t draws = 0;
      do {
        const std::uint64_t bits = random.bits(n, draws);
        out[n] = static_cast<std::int32_t>(uniform_below(bits, static_cast<std::uint64_t>(items_)));
      } while ((out[n] == positive || holds(avoided, out[n])) && ++draws < kMostDraws);
    }
  }

  /// A list to avoid that is needed soon: where it is while it is `far`, later what it holds. Not
  /// a call: gcc drops those of functions that do nothing else.
  [[gnu::always_inline]] void prefetch(std::int64_t list, bool far) const noexcept {
    if (avoided_.splits.empty()) return;
    const std::int64_t* const split = avoided_.splits.data() + list;
    if (far) return __builtin_prefetch(split);
    const std::int32_t* const first = avoided_.values.data() + split[0];
    __builtin_prefetch(first);
    __builtin_prefetch(first + (split[1] - split[0]) / 2);
  }

 private:
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
};

}  // namespace embertable::jobs
