#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace embertable {

/// Finds the block of rows that a row lies in.
class RowLocator {
 public:
  RowLocator() = default;

  /// offsets: [blocks + 1], rising from 0; block b has the rows offsets[b] <= row < offsets[b + 1].
  explicit RowLocator(std::vector<std::int64_t> offsets);

  std::span<const std::int64_t> offsets() const noexcept { return offsets_; }
  std::size_t blocks() const noexcept { return offsets_.size() - 1; }
  std::int64_t rows() const noexcept { return offsets_.back(); }

  /// Requires: 0 <= row < rows().
  std::size_t block(std::int64_t row) const noexcept {
    std::size_t b = first_[row >> shift_];
    while (row >= offsets_[b + 1]) ++b;
    return b;
  }

 private:
  std::vector<std::int64_t> offsets_ = {0};
  std::vector<std::uint32_t> first_;  ///< by row >> shift_: the block of the least such row
  int shift_ = 0;
};

/// Returns the row at which each block of these sizes begins, and their sum. Throws ValueError,
/// beginning with the subject, for a sum of 2^63 and more.
std::vector<std::int64_t> offsets_of(std::span<const std::int64_t> rows,
                                     const std::string& subject);

}  // namespace embertable
