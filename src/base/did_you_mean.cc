#include "base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace embertable {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // The distance from the letters of `a` so far to each head of `b`.
  std::vector<std::size_t> cost(b.size() + 1);
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

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  if (known.empty()) return "";
  const auto distance = [name](std::string_view other) { return edit_distance(name, other); };
  return "; the nearest is '" + std::string(*std::ranges::min_element(known, {}, distance)) + "'";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  return did_you_mean(name, std::vector<std::string_view>(known.begin(), known.end()));
}

std::string must_be_one_of(std::span<const std::string> known, std::string_view name) {
  std::string text = "must be one of ";
  for (std::size_t i = 0; i < known.size(); ++i) text.append(i == 0 ? "" : ", ").append(known[i]);
  return text.append(", got \"").append(name).append("\"").append(did_you_mean(name, known));
}

}  // namespace embertable
