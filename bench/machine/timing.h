#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace embertable::bench {

/// Returns the seconds that a call of `work` takes, by the steady clock.
template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the middle value; the upper one of two. Requires: values is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace embertable::bench
