#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace embertable::bench {

/// The middle value, the upper one of two. values is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace embertable::bench
