#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "testing/executor.h"
#include "testing/serving/lookups.h"

/// Random lookups, and what they give in double, entry by entry.
namespace embertable::lookup_draws {

using namespace engine_fixture;  // NOLINT: the vocabulary of the lookups' tests

inline constexpr std::int64_t kRows = 11;

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

  bool direct = false;  ///< looked up by DirectEmbedding, which prunes nothing
  bool safe() const {
    return kind == Kind::kSparse && (validate || rank > 2) && length == 0 && !direct;
  }
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(test_seed(seed)) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(engine_() % n); }
  bool coin() { return below(2) == 1; }

 private:
  std::mt19937_64 engine_;
};

inline Draw draw(Kind kind, Combiner combiner, bool weighted, int rank, bool empties, unsigned seed,
                 bool direct = false) {
  Random random(seed);
  Draw d{.kind = kind, .combiner = combiner, .rank = rank, .direct = direct};
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
      std::swap(d.entries[i - 1], d.entries[random.below(static_cast<std::int64_t>(i))]);
  return d;
}

inline double value_of(std::int64_t row, std::int64_t column) {
  return static_cast<double>((row * 37 + column * 11) % 64 - 31) / 8;
}

/// Calls visit(output row, entry) for all that are not pruned or cut off.
template <class Visit>
void for_each_kept(const Draw& d, Visit visit) {
  for (const Draw::Entry& e : d.entries) {
    if (d.length > 0 && e.column >= d.length) continue;
    const bool positive = e.weight > 0 || d.combiner == Combiner::kSum;
    if (d.safe() && (e.id < 0 || !positive)) continue;
    const std::int64_t per_sample = std::max<std::int64_t>(d.length, 1);
    visit(static_cast<std::size_t>(e.output * per_sample + (d.length > 0 ? e.column : 0)), e);
  }
}

inline std::size_t rows_out(const Draw& d) {
  return static_cast<std::size_t>(d.outputs * std::max<std::int64_t>(d.length, 1));
}

/// What each output row is divided by, 0 if it is zeros.
inline std::vector<double> denominators(const Draw& d) {
  std::vector<double> weights(rows_out(d)), squares(rows_out(d));
  for_each_kept(d, [&](std::size_t o, const Draw::Entry& e) {
    weights[o] += e.weight;
    squares[o] += e.weight * e.weight;
  });
  if (d.kind == Kind::kDense || d.length > 0 || d.combiner == Combiner::kSum)
    return std::vector<double>(rows_out(d), 1);
  for (double& x : squares) x = std::sqrt(x);
  return d.combiner == Combiner::kMean ? weights : squares;
}

/// The activations of a table [kRows, dim]: [rows_out, dim].
inline std::vector<double> expected(const Draw& d, const std::vector<double>& table) {
  const std::size_t dim = d.dim;
  std::vector<double> out(rows_out(d) * dim);
  const std::vector<double> by = denominators(d);
  for_each_kept(d, [&](std::size_t o, const Draw::Entry& e) {
    for (std::size_t c = 0; by[o] != 0 && c < dim; ++c)
      out[o * dim + c] += e.weight * table[static_cast<std::size_t>(e.id) * dim + c] / by[o];
  });
  return out;
}

/// The gradient of the table [kRows, dim] where that of the activations is `upstream`.
inline std::vector<double> expected_gradient(const Draw& d, const F& upstream) {
  const std::size_t dim = d.dim;
  std::vector<double> gradient(static_cast<std::size_t>(kRows) * dim);
  const std::vector<double> by = denominators(d);
  for_each_kept(d, [&](std::size_t o, const Draw::Entry& e) {
    for (std::size_t c = 0; by[o] != 0 && c < dim; ++c)
      gradient[static_cast<std::size_t>(e.id) * dim + c] +=
          e.weight / by[o] * static_cast<double>(upstream[o * dim + c]);
  });
  return gradient;
}

/// The rows that are looked up, rising.
inline Ids expected_ids(const Draw& d) {
  std::set<std::int64_t> ids;
  for_each_kept(d, [&](std::size_t, const Draw::Entry& e) { ids.insert(e.id); });
  return {ids.begin(), ids.end()};
}

/// The rows that a lookup finds.
inline std::vector<double> first_rows(const Draw& d) {
  std::vector<double> table;
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < d.dim; ++column) table.push_back(value_of(row, column));
  return table;
}

/// Small gradients, some of them 0; those of activations that are zeros by rule are no numbers.
inline F upstream_of(const Draw& d, unsigned seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kNoNumbers = {kInfinity, -kInfinity,
                                     std::numeric_limits<float>::quiet_NaN()};
  Random random(seed * 7919 + 1);
  const std::size_t dim = d.dim;
  const std::vector<double> by = denominators(d);
  F upstream(rows_out(d) * dim);
  for (std::size_t i = 0; i < upstream.size(); ++i) {
    upstream[i] = static_cast<float>(random.below(33) - 16) / 8;
    if (by[i / dim] == 0) upstream[i] = kNoNumbers[i % 3];
  }
  return upstream;
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

inline Nested<FeatureConfig> config_of(const Draw& d) {
  TableConfig table;
  table.vocabulary_size = kRows;
  table.dim = d.dim;
  table.combiner = d.combiner;
  table.initializer = Initializer::function([](const RowRange& range, std::span<float> out) {
    for (std::int64_t i = 0; i < std::ssize(out); ++i)
      out[i] = static_cast<float>(value_of(range.first_row + i / range.dim, i % range.dim));
  });
  FeatureConfig config = feature(make_table(table), d.length);
  config.validate_weights_and_indices = d.validate;
  return Nested<FeatureConfig>(config);
}

inline Shape shape_of(const Draw& d) {
  return (d.length > 0 ? d.samples.append(d.length) : d.samples).append(d.dim);
}

inline void expect_near(std::span<const float> got, const std::vector<double>& want,
                        double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
}

/// A draw for each kind, combiner, rank, with and without weights and empty samples.
template <class Check>
void for_each_draw(unsigned per_cell, bool direct, Check check) {
  unsigned seed = 0;
  for (const Kind kind : {Kind::kDense, Kind::kSparse, Kind::kRagged})
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN})
      for (const bool weighted : {false, true})
        for (const int rank : {2, 3})
          for (const bool empties : {false, true})
            for (unsigned i = 0; i < per_cell; ++i) {
              if (kind == Kind::kRagged && rank > 2) continue;  // ragged ids have rank 2
              SCOPED_TRACE("seed " + std::to_string(++seed));
              check(draw(kind, combiner, weighted, rank, empties, seed, direct), seed);
            }
}

}  // namespace embertable::lookup_draws
