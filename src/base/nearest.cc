#include "base/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace embertable {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> cost(b.size() +
                                1);  // from the letters of `a` so far to each head of `b`
  std::iota(cost.begin(), cost.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(cost[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = cost[j + 1];
      cost[j + 1] = std::min({replaced, diagonal + 1, cost[j] + 1});
    }
  }
  return cost.back();
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  const auto distance = [name](std::string_view candidate) {
    return edit_distance(name, candidate);
  };
  const auto nearest = std::ranges::min_element(candidates, {}, distance);
  return nearest == candidates.end() ? std::string_view() : *nearest;
}

}  // namespace embertable
