#include "base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace embertable {
namespace {

/// Longer names are no misspelt ones. The time of a comparison is the product of two lengths.
constexpr std::size_t kMaxCompared = 256;

}  // namespace

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto small = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::ranges::equal(a, b, {}, small, small);
}

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
  if (known.empty() || name.size() > kMaxCompared) return "";
  const auto distance = [name](std::string_view other) {
    return other.size() > kMaxCompared ? std::string_view::npos : edit_distance(name, other);
  };
  const std::string_view nearest = *std::ranges::min_element(known, {}, distance);
  return nearest.size() > kMaxCompared ? "" : "; the nearest is '" + std::string(nearest) + "'";
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
