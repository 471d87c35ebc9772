#include "step/row_places.h"

namespace embertable {

void RowPlaces::reserve(std::int64_t table_rows) {
  bits_.reserve((table_rows + 63) / 64);
  before_.reserve((table_rows + 63) / 64);
}

void RowPlaces::clear(std::int64_t table_rows) {
  bits_.assign((table_rows + 63) / 64, 0);
  before_.resize(bits_.size());
}

std::int64_t RowPlaces::number() {
  std::int64_t rows = 0;
  for (std::size_t word = 0; word < bits_.size(); ++word) {
    before_[word] = static_cast<std::uint32_t>(rows);
    rows += std::popcount(bits_[word]);
  }
  return rows;
}

void RowPlaces::list(std::span<std::uint64_t> rows) const {
  auto row = rows.begin();
  for (std::size_t word = 0; word < bits_.size(); ++word)
    for (std::uint64_t left = bits_[word]; left != 0; left &= left - 1)
      *row++ = 64 * word + static_cast<std::uint64_t>(std::countr_zero(left));
}

}  // namespace embertable
