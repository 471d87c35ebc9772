#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace embertable::jobs {

/// Draws numbers 0..n-1 with given weights in constant time. Immutable; any number of threads may
/// draw. Source: Vose, A linear algorithm for generating random numbers with a given distribution
/// (IEEE Trans. Software Engineering 17, 1991).
class AliasTable {
 public:
  /// Requires: weights >= 0 with a positive sum, fewer than 2^31 of them.
  explicit AliasTable(std::span<const double> weights);

  /// Returns the number that 64 random bits choose; its share of them is its weight's, within
  /// 2^-32.
  std::int32_t operator()(std::uint64_t bits) const noexcept {
    const std::uint64_t column = ((bits >> 32) * columns_.size()) >> 32;
    const Column& chosen = columns_[column];
    return static_cast<std::uint32_t>(bits) < chosen.below ? static_cast<std::int32_t>(column)
                                                           : chosen.other;
  }

 private:
  struct Column {
    std::uint32_t below;  ///< threshold in 0..2^32: bits below it choose the column's own number,
    std::int32_t other;   ///< all others this one
  };
  std::vector<Column> columns_;
};

}  // namespace embertable::jobs
