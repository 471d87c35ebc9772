// Random lookups against a slow reference in double, entry by entry.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/serving/lookups.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: tables, data and batches of the cases

constexpr std::int64_t kRows = 11;

enum class Kind { kDense, kSparse, kRagged };

/// What is looked up, drawn by a seed: entries with their output row, column and weight.
struct Draw {
  struct Entry {
    std::int64_t output, column, id;
    double weight;
  };
  Kind kind = Kind::kDense;
  Combiner combiner = Combiner::kSum;
  bool weighted = false, validate = true, narrow = false, shuffled = false;
  int rank = 2;
  std::int64_t length = 0;  ///< max_sequence_length
  std::int32_t dim = 1;
  std::int64_t outputs = 0, columns = 0;
  Shape samples;
  std::vector<Entry> entries;

  bool safe() const { return kind == Kind::kSparse && (validate || rank > 2) && length == 0; }
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % n); }
  bool coin() { return below(2) == 1; }

 private:
  std::mt19937_64 engine_;
};

Draw draw(Kind kind, Combiner combiner, bool weighted, int rank, bool empties, unsigned seed) {
  Random random(seed);
  Draw d{.kind = kind, .combiner = combiner, .rank = rank};
  d.validate = random.coin();
  d.narrow = random.coin();
  d.shuffled = kind == Kind::kSparse && random.coin();
  d.length = kind == Kind::kDense || rank > 2 || random.below(3) > 0 ? 0 : 1 + random.below(3);
  d.weighted = weighted && kind != Kind::kDense && d.length == 0;
  d.dim = static_cast<std::int32_t>(std::array{1, 3, 16, 20}[random.below(4)]);
  d.columns = 1 + random.below(4);
  const std::int64_t first = (empties ? 0 : 1) + random.below(5);
  d.samples = rank > 2 ? Shape{first, 1 + random.below(3)} : Shape{first};
  d.outputs = d.samples.num_elements();
  for (std::int64_t o = 0; o < d.outputs; ++o) {
    const std::int64_t most = kind == Kind::kDense ? 1 : d.columns;
    const std::int64_t count = kind == Kind::kDense ? 1 : empties ? random.below(most + 1) : most;
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t id = d.safe() && random.below(6) == 0 ? -1 : random.below(kRows);
      const double weight = std::array{-0.5, 0.0, 0.25, 1.0, 1.0, 2.5}[random.below(6)];
      d.entries.push_back({o, c, id, d.weighted ? weight : 1});
    }
  }
  if (d.shuffled)
    for (std::size_t i = d.entries.size(); i > 1; --i)
      std::swap(d.entries[i - 1],
                d.entries[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  return d;
}

double value_of(std::int64_t row, std::int64_t column) {
  return static_cast<double>((row * 37 + column * 11) % 64 - 31) / 8;
}

/// [outputs * max(length, 1), dim].
std::vector<double> expected(const Draw& d) {
  const std::int64_t per_sample = std::max<std::int64_t>(d.length, 1);
  const auto dim = static_cast<std::size_t>(d.dim);
  const auto outputs = static_cast<std::size_t>(d.outputs * per_sample);
  std::vector<double> sum(outputs * dim), weights(outputs), squares(outputs);
  for (const Draw::Entry& e : d.entries) {
    if (d.length > 0 && e.column >= d.length) continue;
    const bool positive = e.weight > 0 || d.combiner == Combiner::kSum;
    if (d.safe() && (e.id < 0 || !positive)) continue;
    const auto o = static_cast<std::size_t>(e.output * per_sample + (d.length > 0 ? e.column : 0));
    weights[o] += e.weight;
    squares[o] += e.weight * e.weight;
    for (std::size_t c = 0; c < dim; ++c)
      sum[o * dim + c] += e.weight * value_of(e.id, static_cast<std::int64_t>(c));
  }
  if (d.kind == Kind::kDense || d.length > 0 || d.combiner == Combiner::kSum) return sum;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double by =
        d.combiner == Combiner::kMean ? weights[i / dim] : std::sqrt(squares[i / dim]);
    sum[i] = by == 0 ? 0 : sum[i] / by;
  }
  return sum;
}

/// The caller's arrays of a draw.
struct OwnArrays {
  Ids values, indices, splits = {0};
  std::vector<std::int32_t> narrow_values, narrow_indices, narrow_splits;
  std::vector<double> weights;
  Batch batch{Nested<FeatureIds>(FeatureIds()), {}};

  explicit OwnArrays(const Draw& d) {
    for (const Draw::Entry& e : d.entries) {
      values.push_back(e.id);
      weights.push_back(e.weight);
      if (d.rank > 2) indices.insert(indices.end(), {e.output / d.samples[1]});
      indices.insert(indices.end(), {d.rank > 2 ? e.output % d.samples[1] : e.output, e.column});
    }
    for (std::int64_t o = 0; o < d.outputs; ++o)
      splits.push_back(splits.back() + std::ranges::count(d.entries, o, &Draw::Entry::output));
    narrow_values.assign(values.begin(), values.end());
    narrow_indices.assign(indices.begin(), indices.end());
    narrow_splits.assign(splits.begin(), splits.end());
    const auto span = [&](const Ids& wide, const std::vector<std::int32_t>& narrow) {
      return d.narrow ? IntegerSpan(narrow) : IntegerSpan(wide);
    };
    FeatureIds ids = DenseIds{span(values, narrow_values), d.samples};
    FeatureWeights given;
    if (d.kind == Kind::kSparse) {
      ids = SparseIds{span(indices, narrow_indices), span(values, narrow_values),
                      d.samples.append(d.columns)};
      if (d.weighted) given = SparseWeights{weights};
    } else if (d.kind == Kind::kRagged) {
      ids = RaggedIds{span(splits, narrow_splits), span(values, narrow_values)};
      if (d.weighted) given = RaggedWeights{weights};
    }
    batch = batch_of(ids, given);
  }
};

Nested<FeatureConfig> config_of(const Draw& d) {
  TableConfig table;
  table.vocabulary_size = kRows;
  table.dim = d.dim;
  table.combiner = d.combiner;
  table.initializer = Initializer::function([](const RowRange& range, std::span<float> out) {
    for (std::int64_t i = 0; i < std::ssize(out); ++i)
      out[static_cast<std::size_t>(i)] =
          static_cast<float>(value_of(range.first_row + i / range.dim, i % range.dim));
  });
  FeatureConfig config = feature(make_table(table), d.length);
  config.validate_weights_and_indices = d.validate;
  return Nested<FeatureConfig>(config);
}

Shape shape_of(const Draw& d) {
  return (d.length > 0 ? d.samples.append(d.length) : d.samples).append(d.dim);
}

void check(const Draw& d) {
  const OwnArrays arrays(d);
  ServingEmbedding serving(config_of(d));
  const LookupOutput output = serving(arrays.batch);
  EXPECT_EQ(output(0).shape, shape_of(d));
  const std::vector<double> want = expected(d);
  const F got = values_of(output);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 2e-6 * (1 + std::abs(want[i]))) << "element " << i;
}

constexpr unsigned kDrawsPerCell = 60;

TEST(ServingReference, AgreesForEveryKindCombinerWeightsRankAndEmptiness) {
  unsigned seed = 0;
  for (const Kind kind : {Kind::kDense, Kind::kSparse, Kind::kRagged})
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN})
      for (const bool weighted : {false, true})
        for (const int rank : {2, 3})
          for (const bool empties : {false, true})
            for (unsigned i = 0; i < kDrawsPerCell; ++i) {
              if (kind == Kind::kRagged && rank > 2) continue;  // ragged ids have rank 2
              SCOPED_TRACE("seed " + std::to_string(++seed));
              check(draw(kind, combiner, weighted, rank, empties, seed));
            }
}

/// The bits that the engine gives for the same batch, wherever both take it.
TEST(ServingReference, GivesTheEnginesBits) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto kind = seed % 2 == 0 ? Kind::kSparse : Kind::kRagged;
    const auto combiner = static_cast<Combiner>(seed % 3);
    Draw d = draw(kind, combiner, seed % 5 < 3, 2, true, seed);
    if (d.outputs == 0) continue;
    for (Draw::Entry& e : d.entries) {  // nothing to prune
      e.id = std::max<std::int64_t>(e.id, 0);
      e.weight = std::abs(e.weight) + 0.3;
    }
    if (!d.weighted)
      for (Draw::Entry& e : d.entries) e.weight = 1;
    const OwnArrays arrays(d);
    const auto config = config_of(d);
    Embedding engine = engine_with(accelerator(), config);
    ServingEmbedding serving(config);
    EXPECT_EQ(values_of(serving(arrays.batch)), forward(engine, arrays.batch));
  }
}

}  // namespace
}  // namespace embertable
