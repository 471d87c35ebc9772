#pragma once

#include <cstdint>

namespace embertable {

/// Counts numbers below kFew. Keeps four copies of each counter, because few counters would wait
/// for their last stores.
class FewCounts {
 public:
  static constexpr std::uint32_t kFew = 64;

  /// Counts `count` numbers.
  [[gnu::always_inline]] void add(const std::uint32_t* number, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4)
      for (int copy = 0; copy < 4; ++copy) ++counts_[copy][number[i + copy]];
    for (; i < count; ++i) ++counts_[0][number[i]];
  }

  [[gnu::always_inline]] std::uint32_t of(std::uint32_t number) const {
    return counts_[0][number] + counts_[1][number] + counts_[2][number] + counts_[3][number];
  }

 private:
  alignas(64) std::uint32_t counts_[4][kFew] = {};
};

}  // namespace embertable
