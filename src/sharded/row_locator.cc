#include "sharded/row_locator.h"

#include <algorithm>
#include <utility>

namespace embertable {

RowLocator::RowLocator(std::vector<std::int64_t> offsets) : offsets_(std::move(offsets)) {
  // A few entries for each block, so that the walk from the first candidate is short.
  const auto most = static_cast<std::int64_t>(std::max<std::size_t>(64, 8 * blocks()));
  while ((rows() >> shift_) > most) ++shift_;
  std::uint32_t b = 0;
  for (std::int64_t row = 0; row < rows(); row += std::int64_t{1} << shift_) {
    while (row >= offsets_[b + 1]) ++b;
    first_.push_back(b);
  }
}

}  // namespace embertable
