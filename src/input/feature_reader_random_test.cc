#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "testing/executor.h"
#include "testing/feature_reader.h"

namespace embertable::input {
namespace {

constexpr std::int64_t kRows = 1000;
constexpr std::int32_t kBuckets = 5;

struct Entry {
  std::int64_t id;
  float weight;
};

/// A batch in the caller's form, and the entries of each output row by the rules of engine.md
/// alone.
struct Case {
  std::vector<std::int64_t> ids, splits, at;
  std::vector<double> weights;
  FeatureSpec spec;
  FeatureIds batch;
  bool weighted = false;
  std::vector<std::vector<Entry>> outputs;
  std::int64_t truncated = 0;

  std::vector<std::int32_t> short_ids, short_splits, short_at;
};

class RandomCases {
 public:
  explicit RandomCases(std::uint64_t seed) : random_(seed) {}

  std::unique_ptr<Case> next() {
    auto made = std::make_unique<Case>();
    made->spec = {.path = "f",
                  .vocabulary_size = kRows,
                  .combiner = static_cast<Combiner>(below(3)),
                  .drop_out_of_range = one_in(2),
                  .wide = one_in(2)};
    bad_ids_ = made->spec.drop_out_of_range && one_in(2);
    plain_weights_ = one_in(3);
    const std::int64_t samples = pick({0, 1, 5, kTileRows - 1, kTileRows, kTileRows + 1, 5000});
    switch (below(3)) {
      case 0:
        make_dense(*made, samples);
        break;
      case 1:
        make_ragged(*made, samples);
        break;
      default:
        make_sparse(*made, samples);
        break;
    }
    drop_bad_ids(*made);
    return made;
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }
  std::int64_t pick(std::initializer_list<std::int64_t> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  std::int64_t id() {
    if (bad_ids_ && one_in(10)) return pick({-1, kRows, kRows + 5, -(1 << 30)});
    return below(kRows);
  }
  double weight() {
    return plain_weights_ || one_in(3) ? 1.0 : static_cast<double>(below(9) - 3) / 7;
  }

  void make_dense(Case& made, std::int64_t samples) {
    for (std::int64_t i = 0; i < samples; ++i) {
      made.ids.push_back(id());
      made.outputs.push_back({{made.ids.back(), 1}});
    }
    made.spec.output_shape = {samples};
    made.spec.combiner = one_in(2) ? Combiner::kSum : made.spec.combiner;
    made.batch = short_or_long(made, [&](const auto&, const auto&, const auto& ids) {
      return FeatureIds(DenseIds{ids, {samples, 1}});
    });
  }

  /// Every sample's ids with their columns; an output row by sample, or by sample and column below
  /// `length`.
  void add_entry(Case& made, std::int64_t sample, std::int64_t column, std::int64_t length,
                 bool weights_count, std::size_t i) {
    if (length > 0 && column >= length) {
      ++made.truncated;
      return;
    }
    const std::int64_t output = length > 0 ? sample * length + column : sample;
    made.outputs[output].push_back(
        {made.ids[i], weights_count ? static_cast<float>(made.weights[i]) : 1.0f});
  }

  /// Sets the shape; returns the length of sequences, 0 for none.
  std::int64_t choose_form(Case& made, std::int64_t samples, bool spread) {
    const std::int64_t length = one_in(2) ? 0 : 1 + below(3);
    made.outputs.resize(samples * std::max<std::int64_t>(length, 1));
    made.spec.output_shape = length > 0 ? Shape{samples, length} : Shape{samples};
    made.spec.max_sequence_length = spread ? 0 : length;
    made.weighted = one_in(2);
    return length;
  }

  void make_ragged(Case& made, std::int64_t samples) {
    // The shape is built, not cut by max_sequence_length.
    const bool spread = one_in(2) && samples > 0;
    std::int64_t length = choose_form(made, samples, spread);
    if (spread && length == 1) length = 0;
    const bool weights_count = made.weighted && !(spread && length > 0);
    const std::int64_t most = pick({1, 2, 5});
    const bool one_each = one_in(3);
    made.splits = {0};
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t count = one_each ? 1 : below(most + 1);
      for (std::int64_t c = 0; c < count; ++c) {
        made.ids.push_back(id());
        made.weights.push_back(weight());
        add_entry(made, s, c, length, weights_count, made.ids.size() - 1);
      }
      made.splits.push_back(static_cast<std::int64_t>(made.ids.size()));
    }
    made.batch = short_or_long(made, [](const auto& splits, const auto&, const auto& ids) {
      return FeatureIds(RaggedIds{splits, ids});
    });
  }

  void make_sparse(Case& made, std::int64_t samples) {
    const std::int64_t length = choose_form(made, samples, false);
    const std::int64_t columns = 4;
    const std::int64_t count = samples == 0 ? 0 : below(2 * samples + 1);
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t i = 0; i < count; ++i) places.emplace_back(below(samples), below(columns));
    if (!one_in(3)) std::sort(places.begin(), places.end());
    const bool high_rank = length == 0 && one_in(2);
    for (const auto& [sample, column] : places) {
      if (high_rank) made.at.push_back(0);
      made.at.insert(made.at.end(), {sample, column});
      made.ids.push_back(id());
      made.weights.push_back(weight());
    }
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
    for (const std::size_t i : order) {
      add_entry(made, places[i].first, places[i].second, length, made.weighted, i);
    }
    const Shape shape = high_rank ? Shape{1, samples, columns} : Shape{samples, columns};
    made.batch = short_or_long(made, [&](const auto&, const auto& at, const auto& ids) {
      return FeatureIds(SparseIds{at, ids, shape});
    });
  }

  template <class Make>
  FeatureIds short_or_long(Case& made, Make make) {
    if (one_in(2)) return make(made.splits, made.at, made.ids);
    const auto shorten = [](const auto& from, auto& to) { to.assign(from.begin(), from.end()); };
    shorten(made.splits, made.short_splits);
    shorten(made.at, made.short_at);
    shorten(made.ids, made.short_ids);
    return make(made.short_splits, made.short_at, made.short_ids);
  }

  static void drop_bad_ids(Case& made) {
    for (auto& entries : made.outputs) {
      std::erase_if(entries, [](const Entry& e) { return e.id < 0 || e.id >= kRows; });
    }
  }

  std::mt19937 random_;
  bool bad_ids_ = false;
  bool plain_weights_ = false;
};

float denominator_of(const std::vector<Entry>& entries, Combiner combiner) {
  if (combiner == Combiner::kSum || entries.empty()) return 1;
  const bool mean = combiner == Combiner::kMean;
  std::optional<float> sum;
  for (const Entry& entry : entries) {
    const float term = mean ? entry.weight : entry.weight * entry.weight;
    sum = sum ? *sum + term : term;
  }
  return mean ? *sum : std::sqrt(*sum);
}

/// The plan that a case must give: written from its lists, one output row after the other.
ReadPlan expected(const Case& made) {
  const bool dense = std::holds_alternative<DenseIds>(made.batch);
  const auto* const ragged = std::get_if<RaggedIds>(&made.batch);
  const bool spread = ragged != nullptr && made.spec.max_sequence_length == 0 &&
                      ragged->row_splits.size() - 1 != made.spec.output_shape.num_elements();
  ReadPlan plan{.outputs = static_cast<std::int64_t>(made.outputs.size()),
                .split = {0},
                .shape = made.spec.output_shape,
                .truncated = made.truncated};
  const auto tiles = static_cast<std::size_t>((plan.outputs + kTileRows - 1) / kTileRows);
  plan.counts.resize(tiles * 16);
  bool one_each = true;
  for (std::size_t o = 0; o < made.outputs.size(); ++o) {
    for (const Entry& entry : made.outputs[o]) {
      plan.row.push_back(entry.id);
      plan.weight.push_back(entry.weight);
      const auto bucket = bucket_of(static_cast<std::uint64_t>(entry.id), kBuckets);
      ++plan.counts[o / static_cast<std::size_t>(kTileRows) * 16 + bucket];
    }
    plan.split.push_back(static_cast<std::int64_t>(plan.row.size()));
    plan.denominator.push_back(
        dense || spread ? 1 : denominator_of(made.outputs[o], made.spec.combiner));
    one_each = one_each && made.outputs[o].size() == 1;
  }
  plan.dropped = static_cast<std::int64_t>(made.ids.size() - plan.row.size()) - made.truncated;
  const auto all_one = [](const std::vector<float>& values) {
    return std::all_of(values.begin(), values.end(), [](float v) { return v == 1; });
  };
  if (all_one(plan.weight)) plan.weight.clear();
  if (all_one(plan.denominator)) plan.denominator.clear();
  if (one_each && plan.weight.empty()) plan.split.clear();
  return plan;
}

TEST(FeatureReaderRandom, GivesThePlanOfTheSlowReference) {
  RandomCases cases(test_seed());
  for (int i = 0; i < 400; ++i) {
    const std::unique_ptr<Case> made = cases.next();
    FeatureWeights weights;
    const std::vector<float> narrow(made->weights.begin(), made->weights.end());
    if (made->weighted) {
      const FloatSpan values = i % 2 == 0 ? FloatSpan(made->weights) : FloatSpan(narrow);
      if (std::holds_alternative<RaggedIds>(made->batch)) weights = RaggedWeights{values};
      if (std::holds_alternative<SparseIds>(made->batch)) weights = SparseWeights{values};
    }
    const ReadPlan plan = expected(*made);
    for (const SimdLevel level : usable_levels()) {
      for (const bool backwards : {false, true}) {
        const ReadPlan got =
            read(made->spec, made->batch,
                 {.weights = weights, .buckets = kBuckets, .level = level, .backwards = backwards});
        ASSERT_EQ(got.row, plan.row) << "case " << i;
        ASSERT_EQ(got.split, plan.split) << "case " << i;
        ASSERT_EQ(got.weight, plan.weight) << "case " << i;
        ASSERT_EQ(got.denominator, plan.denominator) << "case " << i;
        ASSERT_TRUE(got == plan) << "case " << i;
      }
    }
  }
}

}  // namespace
}  // namespace embertable::input
