#include "apps/jobs/math/word_similarity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "apps/jobs/text/csv_reader.h"

namespace embertable::jobs {
namespace {

std::optional<std::int64_t> find_word(const IdMap& words, std::string_view text, TokenRule rule) {
  return rule == TokenRule::kWords ? words.find(as_word(text)) : words.find(text);
}

/// Returns ranks from 0; equal values get the mean of their ranks. Requires: no value is NaN.
std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0, end = 0; i < order.size(); i = end) {
    ++end;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + end - 1) / 2;
  }
  return ranks;
}

}  // namespace

WordPairs read_word_pairs(const std::string& path, const IdMap& words, TokenRule rule,
                          std::int64_t skip_bad) {
  const std::vector<std::string> columns = {"1", "2", "3"};
  CsvReader reader(std::span(&path, 1), {}, columns, skip_bad);
  WordPairs read;
  while (reader.next()) {
    try {
      const double score = reader.number(2);
      const auto first = find_word(words, reader.text(0), rule);
      const auto second = find_word(words, reader.text(1), rule);
      if (first && second) read.pairs.push_back({*first, *second, score});
    } catch (const BrokenRecord&) {
      reader.leave_out();
    }
  }
  read.left_out = reader.left_out();
  return read;
}

double spearman(std::span<const double> a, std::span<const double> b) {
  const auto has_nan = [](std::span<const double> values) {
    return std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
  };
  if (has_nan(a) || has_nan(b)) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double products = 0, squares_x = 0, squares_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - mean) * (y[i] - mean);
    squares_x += (x[i] - mean) * (x[i] - mean);
    squares_y += (y[i] - mean) * (y[i] - mean);
  }
  if (squares_x == 0 || squares_y == 0) return 0;
  return products / std::sqrt(squares_x * squares_y);
}

double cosine(const float* a, const float* b, std::int64_t dim) noexcept {
  double products = 0, squares_a = 0, squares_b = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    products += x * y;
    squares_a += x * x;
    squares_b += y * y;
  }
  return squares_a == 0 || squares_b == 0 ? 0 : products / std::sqrt(squares_a * squares_b);
}

}  // namespace embertable::jobs
