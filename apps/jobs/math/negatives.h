#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/jobs/data/ranking.h"
#include "base/random.h"

namespace embertable::jobs {

/// Draws items that a sample does not have: uniform, and repeated up to 32 times if an item is the
/// positive or in the sample's list of items to avoid. A sample that has nearly all items gets the
/// last one drawn.
class NegativeSampler {
 public:
  static constexpr std::uint64_t kMostDraws = 32;

  /// `avoided`, each list rising, is borrowed; empty: only the positive is avoided.
  NegativeSampler(std::int64_t items, ListsView avoided) : items_(items), avoided_(avoided) {
    for (std::size_t list = 0; list + 1 < avoided.splits.size(); ++list)
      add_sieve(avoided[static_cast<std::int64_t>(list)]);
  }

  /// Draws negatives. `random` belongs to the sample, so that its negatives depend on nothing else.
  void draw(const RandomRow& random, std::int64_t list, std::int32_t positive,
            std::span<std::int32_t> out) const noexcept {
    propose(random, list, out);
    settle(random, list, positive, out);
  }

  /// Runs the first half of `draw`. Called for many samples before the second half of the first of
  /// them, so that what that reads is being loaded from memory.
  void propose(const RandomRow& random, std::int64_t list,
               std::span<std::int32_t> out) const noexcept {
    for (std::size_t n = 0; n < out.size(); ++n) {
      out[n] = item_of(random.bits(n));
      if (!sieves_.empty()) __builtin_prefetch(word_of(list, hash_of(out[n])));
    }
  }

  /// True if nothing needs to be settled.
  bool fits(std::int64_t list, std::int32_t positive,
            std::span<const std::int32_t> out) const noexcept {
    return std::none_of(out.begin(), out.end(),
                        [&](std::int32_t item) { return item == positive || avoids(list, item); });
  }

  /// Draws again where a proposed item must be avoided.
  void settle(const RandomRow& random, std::int64_t list, std::int32_t positive,
              std::span<std::int32_t> out) const noexcept {
    for (std::size_t n = 0; n < out.size(); ++n) {
      for (std::uint64_t draws = 1;
           draws < kMostDraws && (out[n] == positive || avoids(list, out[n])); ++draws)
        out[n] = item_of(random.bits(n, draws));
    }
  }

  /// Prefetches a list that is needed soon.
  [[gnu::always_inline]] void prefetch(std::int64_t list) const noexcept {
    if (!sieves_.empty()) __builtin_prefetch(sieves_.data() + list);
  }

 private:
  /// Words of bits, one for 4 to 8 items of a list. Each item sets two bits of one word; only few
  /// other items find both set and have to be searched for in the list.
  struct Sieve {
    std::uint32_t first;  ///< word in words_
    std::uint32_t shift;  ///< 32 - log2(words)
  };

  std::int32_t item_of(std::uint64_t bits) const noexcept {
    return static_cast<std::int32_t>(uniform_below(bits, static_cast<std::uint64_t>(items_)));
  }

  static std::uint64_t hash_of(std::int32_t item) noexcept {
    return static_cast<std::uint32_t>(item) * kGoldenRatio;
  }
  static std::uint64_t bits_of(std::uint64_t hash) noexcept {
    return std::uint64_t{1} << (hash >> 20 & 63) | std::uint64_t{1} << (hash >> 26 & 63);
  }
  const std::uint64_t* word_of(std::int64_t list, std::uint64_t hash) const noexcept {
    const Sieve sieve = sieves_[list];
    return words_.data() + sieve.first + ((hash >> 32) >> sieve.shift);
  }

  void add_sieve(std::span<const std::int32_t> list) {
    const auto words = static_cast<std::uint32_t>(
        std::min<std::size_t>(std::bit_ceil((list.size() + 7) / 8), 1u << 31));
    const Sieve sieve = {static_cast<std::uint32_t>(words_.size()),
                         32u - static_cast<std::uint32_t>(std::countr_zero(words))};
    words_.resize(words_.size() + words);
    for (const std::int32_t item : list) {
      const std::uint64_t hash = hash_of(item);
      words_[sieve.first + ((hash >> 32) >> sieve.shift)] |= bits_of(hash);
    }
    sieves_.push_back(sieve);
  }

  bool avoids(std::int64_t list, std::int32_t item) const noexcept {
    if (sieves_.empty()) return false;
    const std::uint64_t hash = hash_of(item);
    return (~*word_of(list, hash) & bits_of(hash)) == 0 && holds(avoided_[list], item);
  }

  /// Searches without branches, which would be unpredictable.
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
  std::vector<std::uint64_t> words_;
};

}  // namespace embertable::jobs
