#include "variable/row_locator.h"

#include <algorithm>
#include <utility>

#include "embertable/errors.h"

namespace embertable {

RowLocator::RowLocator(std::vector<std::int64_t> offsets) : offsets_(std::move(offsets)) {
  // A few entries for each block, so that the walk from the first candidate is short.
  const auto most = static_cast<std::int64_t>(std::max<std::size_t>(64, 8 * blocks()));
  while ((rows() >> shift_) > most) ++shift_;
  std::uint32_t b = 0;
  for (std::int64_t i = 0; rows() > 0 && i <= (rows() - 1) >> shift_; ++i) {
    while (i << shift_ >= offsets_[b + 1]) ++b;
    first_.push_back(b);
  }
}

std::vector<std::int64_t> offsets_of(std::span<const std::int64_t> rows,
                                     const std::string& subject) {
  std::vector<std::int64_t> offsets = {0};
  std::int64_t sum = 0;
  for (const std::int64_t of_block : rows) {
    if (__builtin_add_overflow(sum, of_block, &sum))
      throw ValueError(subject + "there must be fewer than 2^63 rows in all");
    offsets.push_back(sum);
  }
  return offsets;
}

}  // namespace embertable
