#include "base/did_you_mean.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace embertable {
namespace {

/// Longer names are no misspelt ones. The time of a comparison is the product of two lengths.
constexpr std::size_t kMaxCompared = 256;

char small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string small(std::string_view text) {
  std::string result(text);
  for (char& letter : result) letter = small(letter);
  return result;
}

/// Returns the parts of a name between "_", ".", "-", "/" and blanks.
std::vector<std::string_view> words_of(std::string_view name) {
  std::vector<std::string_view> words;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("_.-/ "), name.size());
    if (end > 0) words.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return words;
}

/// True if one word may be short for the other: "vocab" of "vocabulary".
bool is_short_for(std::string_view a, std::string_view b) {
  constexpr std::size_t kShortest = 3;
  const std::size_t letters = std::min(a.size(), b.size());
  return letters >= kShortest && equal_in_any_case(a.substr(0, letters), b.substr(0, letters));
}

/// True if `words` are some of `others`, in their order, perhaps short for them or misspelt.
bool stand_in(std::span<const std::string_view> words, std::span<const std::string_view> others) {
  std::size_t found = 0;
  for (const std::string_view other : others) {
    if (found == words.size()) break;
    const std::string_view word = words[found];
    if (equal_in_any_case(word, other) || is_misspelt(word, other) || is_short_for(word, other))
      ++found;
  }
  return found == words.size();
}

/// True if one name is the other misspelt, or has all of its words.
bool may_be_meant(std::string_view name, std::string_view other) {
  if (is_misspelt(name, other)) return true;
  const std::vector<std::string_view> words = words_of(name), others = words_of(other);
  if (words.empty() || others.empty()) return false;
  return words.size() <= others.size() ? stand_in(words, others) : stand_in(others, words);
}

}  // namespace

bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return small(x) == small(y); });
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

bool is_misspelt(std::string_view name, std::string_view other) {
  const auto [shorter, longer] = std::minmax({name.size(), other.size()});
  if (longer > kMaxCompared || longer - shorter > kMisspelt) return false;
  const std::size_t distance = edit_distance(small(name), small(other));
  return distance <= kMisspelt && 2 * distance <= longer;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() > kMaxCompared) return "";
  const std::string given = small(name);
  std::string_view nearest;
  std::size_t least = std::string_view::npos;
  for (const std::string_view other : known) {
    if (other.size() > kMaxCompared || !may_be_meant(name, other)) continue;
    const std::size_t distance = edit_distance(given, small(other));
    if (distance >= least) continue;
    nearest = other;
    least = distance;
  }
  if (least == std::string_view::npos) return "";
  return "; the nearest is '" + std::string(nearest) + "'";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  return did_you_mean(name, std::vector<std::string_view>(known.begin(), known.end()));
}

std::string name_hint(std::string_view name, std::span<const std::string_view> known) {
  constexpr std::size_t kFew = 16;
  std::string hint = did_you_mean(name, known);
  if (!hint.empty() || known.size() > kFew) return hint;
  for (const std::string_view one : known)
    hint.append(hint.empty() ? "; there are '" : ", '").append(one).append("'");
  return known.size() == 1 ? "; there is '" + std::string(known.front()) + "'" : hint;
}

std::string must_be_one_of(std::span<const std::string> known, std::string_view name) {
  std::string text = "must be one of ";
  for (std::size_t i = 0; i < known.size(); ++i) text.append(i == 0 ? "" : ", ").append(known[i]);
  return text.append(", got \"").append(name).append("\"").append(did_you_mean(name, known));
}

}  // namespace embertable
