// Checks the combiners: compares activations and the gradients of rows with a computation in
// double.

#include <cmath>
#include <exception>
#include <optional>

#include "apps/selftest/comparison.h"
#include "apps/selftest/table.h"
#include "base/random.h"
#include "embertable/embedding.h"

namespace embertable::selftest {
namespace {

constexpr double kRelative = 1e-5;
constexpr double kAbsolute = 2e-6;
constexpr std::int32_t kDims[] = {1, 16, 37, 64, 300};
constexpr std::int64_t kRows = 50;
constexpr std::int64_t kSamples = 40;
constexpr double kRate = 0.5;

float number(std::uint64_t stream, std::uint64_t row, std::uint64_t column) {
  return 2 * uniform_float(random_bits(stream, row, column)) - 1;
}

/// Samples of 0..8 ids, every fifth empty; weights of both signs, some 0.
struct Input {
  std::vector<std::int64_t> splits = {0};
  std::vector<std::int64_t> ids;
  std::vector<float> weights;  ///< empty: all 1
  std::vector<float> gradients;

  Input(std::int32_t dim, bool weighted) {
    for (std::uint64_t s = 0; s < kSamples; ++s) {
      const std::uint64_t count = s % 5 == 0 ? 0 : uniform_below(random_bits(1, s, 0), 9);
      for (std::uint64_t k = 1; k <= count; ++k) {
        ids.push_back(static_cast<std::int64_t>(uniform_below(random_bits(1, s, k), kRows)));
        if (weighted) weights.push_back(k % 7 == 6 ? 0 : 0.25f + std::abs(number(2, s, k)));
        if (weighted && s % 4 == 3) weights.back() = -weights.back();
      }
      splits.push_back(static_cast<std::int64_t>(ids.size()));
      for (std::uint64_t c = 0; c < static_cast<std::uint64_t>(dim); ++c)
        gradients.push_back(number(3, s, c));
    }
  }

  double weight(std::size_t entry) const { return weights.empty() ? 1 : weights[entry]; }

  /// Returns the divisor of sample s; 0 for an empty one.
  double denominator(Combiner combiner, std::size_t s) const {
    double sum = 0;
    for (auto e = static_cast<std::size_t>(splits[s]); e < static_cast<std::size_t>(splits[s + 1]);
         ++e)
      sum += combiner == Combiner::kSqrtN ? weight(e) * weight(e) : weight(e);
    if (combiner == Combiner::kSqrtN) return std::sqrt(sum);
    const bool empty = splits[s] == splits[s + 1];
    return combiner == Combiner::kMean ? sum : empty ? 0.0 : 1.0;
  }
};

/// One feature of one table with SGD.
class Lookup {
 public:
  Lookup(Combiner combiner, std::int32_t dim) {
    FeatureConfig feature;
    feature.table = make_table({.vocabulary_size = kRows,
                                .dim = dim,
                                .initializer = Initializer::uniform(-1, 1),
                                .combiner = combiner,
                                .name = "t"});
    feature.output_shape = {kSamples};
    StrategyOptions options;
    options.executor = make_thread_pool(1);
    engine_.emplace(Nested<FeatureConfig>(feature), Optimizer("sgd", kRate),
                    make_strategy(std::move(options)));
    engine_->build();
  }

  std::vector<float> rows(std::int32_t dim) const {
    std::vector<std::int64_t> all;
    for (std::int64_t r = 0; r < kRows; ++r) all.push_back(r);
    std::vector<float> values(kRows * dim);
    engine_->read_rows("t", all, values);
    return values;
  }

  /// Returns the activations and applies the gradients.
  std::vector<float> step(const Input& input) {
    Batch batch{.features =
                    Nested<FeatureIds>(RaggedIds{.row_splits = input.splits, .values = input.ids})};
    if (!input.weights.empty())
      batch.weights = Nested<FeatureWeights>(RaggedWeights{.values = input.weights});
    engine_->enqueue(batch);
    const std::span<const float> values = engine_->dequeue()(0).values;
    std::vector<float> activations(values.begin(), values.end());
    engine_->apply_gradients(Nested<Gradient>(Gradient{.values = input.gradients, .shape = {}}));
    return activations;
  }

 private:
  std::optional<Embedding> engine_;
};

void check(Line& line, Combiner combiner, std::int32_t dim, bool weighted, SimdLevel level,
           Hasher& hasher) {
  const Input input(dim, weighted);
  Lookup lookup(combiner, dim);
  const std::vector<float> before = lookup.rows(dim);
  const std::vector<float> activations = lookup.step(input);
  const std::vector<float> after = lookup.rows(dim);
  hasher.update_numbers(activations);
  hasher.update_numbers(after);

  const auto width = static_cast<std::size_t>(dim);
  std::vector<double> expected(activations.size());
  std::vector<double> rows(before.begin(), before.end());
  for (std::size_t s = 0; s < static_cast<std::size_t>(kSamples); ++s) {
    const double divisor = input.denominator(combiner, s);
    for (auto e = static_cast<std::size_t>(input.splits[s]);
         e < static_cast<std::size_t>(input.splits[s + 1]) && divisor != 0; ++e) {
      const auto row = static_cast<std::size_t>(input.ids[e]) * width;
      const double gain = input.weight(e) / divisor;
      for (std::size_t c = 0; c < width; ++c) {
        expected[s * width + c] += gain * before[row + c];
        rows[row + c] -= kRate * gain * input.gradients[s * width + c];
      }
    }
  }
  Comparison compare(
      line,
      fmt::format("dim {}, {} at {}", dim, weighted ? "weights" : "no weights", to_string(level)),
      kRelative, kAbsolute);
  for (std::size_t i = 0; i < expected.size(); ++i)
    compare.near("activation", i, activations[i], expected[i]);
  for (std::size_t i = 0; i < rows.size(); ++i) compare.near("row", i, after[i], rows[i]);
}

}  // namespace

std::vector<std::string> combiners() {
  std::vector<std::string> names;
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN})
    names.emplace_back(to_string(combiner));
  return names;
}

Line check_combiner(const std::string& name) {
  Line line{.name = name};
  try {
    for (const SimdLevel level : usable_levels()) {
      const ForcedLevel forced(level);
      Hasher hasher;
      line.programs = 0;
      for (const std::int32_t dim : kDims) {
        for (const bool weighted : {false, true}) {
          check(line, parse_combiner(name), dim, weighted, level, hasher);
          ++line.programs;
        }
      }
      end_level(line, to_string(level), hasher);
    }
  } catch (const std::exception& error) {
    line.failures.push_back(fmt::format("{}: {}", name, error.what()));
  }
  return line;
}

}  // namespace embertable::selftest
