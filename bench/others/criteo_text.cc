#include "bench/others/criteo_text.h"

#include <cmath>

namespace embertable::bench {
namespace {

/// Number of distinct values in the columns C1 to C26.
constexpr int kDifferent[] = {585,    523,   56'125, 29'645, 145, 12,     8'405,  278,   3,
                              13'323, 4'012, 51'268, 2'914,  26,  5'708,  42'301, 10,    2'766,
                              1'307,  4,     47'557, 13,     14,  13'710, 55,     10'461};

/// Uniform in [0, 1).
double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state >> 11) * 0x1p-53;
}

void append_number(std::string& text, std::uint64_t& state) {
  const double kind = uniform(state);
  if (kind < 0.15) return;
  if (kind < 0.17) {
    text += "-1";
  } else {
    const double value = std::exp(12 * std::pow(uniform(state), 3));
    text += std::to_string(static_cast<std::int64_t>(value) - 1);
  }
}

void append_category(std::string& text, std::uint64_t& state, int column) {
  if (uniform(state) < 0.05) return;
  const auto value = static_cast<std::uint64_t>(kDifferent[column] * std::pow(uniform(state), 4));
  std::uint64_t hash = (value + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(column);
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  for (int digit = 0; digit < 8; ++digit)
    text += "0123456789abcdef"[(hash >> (32 + 4 * digit)) & 15];
}

}  // namespace

std::string criteo_text(std::int64_t rows) {
  std::string text;
  std::uint64_t state = 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    text += uniform(state) < 0.256 ? '1' : '0';
    for (int column = 0; column < kCriteoNumbers; ++column) {
      text += '\t';
      append_number(text, state);
    }
    for (int column = 0; column < kCriteoColumns - 1 - kCriteoNumbers; ++column) {
      text += '\t';
      append_category(text, state, column);
    }
    text += '\n';
  }
  return text;
}

}  // namespace embertable::bench
