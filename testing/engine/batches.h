#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "testing/engine/fixture.h"

namespace embertable::engine_fixture {

using F = std::vector<float>;
using Ids = std::vector<std::int64_t>;
using Samples = std::vector<Ids>;

inline Batch batch_of(FeatureIds watched, FeatureIds favorited, FeatureIds friends) {
  return {Nested<FeatureIds>::tuple({watched, favorited, friends}), {}};
}
inline Batch batch_of(FeatureIds ids, FeatureWeights weights = {}) {
  return {Nested<FeatureIds>(std::move(ids)), Nested<FeatureWeights>(std::move(weights))};
}
inline Nested<FeatureWeights> weights_of(FeatureWeights watched, FeatureWeights favorited,
                                         FeatureWeights friends) {
  return Nested<FeatureWeights>::tuple({watched, favorited, friends});
}

inline std::vector<Batch> sparse_batches(const std::vector<OwnedBatch>& owned) {
  std::vector<Batch> batches;
  for (const OwnedBatch& batch : owned) batches.push_back(batch.sparse());
  return batches;
}

/// Sparse ids of rank 3: the same samples for each of `outer` indices.
class StackedRows {
 public:
  StackedRows(const Samples& samples, std::int64_t outer, std::int64_t width)
      : shape_{outer, static_cast<std::int64_t>(samples.size()), width} {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::size_t s = 0; s < samples.size(); ++s) {
        for (std::size_t c = 0; c < samples[s].size(); ++c) {
          values_.push_back(samples[s][c]);
          indices_.insert(indices_.end(),
                          {o, static_cast<std::int64_t>(s), static_cast<std::int64_t>(c)});
        }
      }
    }
  }
  FeatureIds ids() const { return SparseIds{indices_, values_, shape_}; }

 private:
  Ids values_, indices_;
  Shape shape_;
};

/// The HD data of the cases, two outer indices for a replica.
struct StackedBatch {
  StackedRows watched{Data().watched, 2, 2};
  StackedRows favorited{Data().favorited, 2, 2};
  StackedRows friends{Data().friends, 2, 3};
  Batch batch() const { return batch_of(watched.ids(), favorited.ids(), friends.ids()); }
};

inline Nested<FeatureConfig> features_with(std::int64_t watched_length,
                                           std::int64_t favorited_length,
                                           std::int64_t friends_length) {
  const TablePtr videos = video();
  return Nested<FeatureConfig>::tuple({feature(videos, watched_length),
                                       feature(videos, favorited_length),
                                       feature(user(), friends_length)});
}

/// A table like `user`, row r = 2r, 2r + 1, alone in its engine.
inline Nested<FeatureConfig> one_feature(Combiner combiner, std::int64_t length = 0,
                                         Shape shape = {}) {
  return Nested<FeatureConfig>(feature(make_table({.vocabulary_size = 16,
                                                   .dim = 2,
                                                   .initializer = counting(),
                                                   .optimizer = {},
                                                   .combiner = combiner,
                                                   .name = "user"}),
                                       length, shape));
}

/// A table of `rows` rows of `dim` zeros, summed, alone in its engine.
inline Nested<FeatureConfig> one_zero_table(std::int64_t rows, std::int32_t dim) {
  return Nested<FeatureConfig>(feature(make_table({.vocabulary_size = rows,
                                                   .dim = dim,
                                                   .initializer = Initializer::zeros(),
                                                   .optimizer = {},
                                                   .combiner = Combiner::kSum,
                                                   .name = "t"})));
}

/// What an inference batch gives for the features' only leaf.
inline F forward(Embedding& engine, const Batch& batch) {
  engine.enqueue(batch, {.training = false});
  return values(engine.dequeue(), 0);
}

/// One gradient for each feature of each replica, made of its activation and kept; an empty one is
/// a null gradient.
class Gradients {
 public:
  template <class Make>
  Gradients(const Activations& of, Make make) {
    storage_.reserve(of.replicas() * of.features());
    for (std::int32_t r = 0; r < of.replicas(); ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t i = 0; i < of.features(); ++i) {
        const F& values = storage_.emplace_back(make(of(i, r), i, r));
        leaves.push_back(values.empty() ? Gradient::none() : Gradient{values, of(i, r).shape});
      }
      trees_.emplace_back(of.structure(), std::move(leaves));
    }
  }
  std::span<const Nested<Gradient>> all() const { return trees_; }
  const Nested<Gradient>& operator[](std::size_t replica) const { return trees_[replica]; }

 private:
  std::vector<F> storage_;
  std::vector<Nested<Gradient>> trees_;
};

/// The same number everywhere.
inline auto filled(float value) {
  return [value](const Activation& activation, std::int64_t, std::int32_t) {
    return F(activation.values.size(), value);
  };
}

/// Gradient of the cases' loss divided by the replicas: 2 * activation / (rows of a replica *
/// replicas).
inline F loss_gradient(const Activation& activation, std::int32_t replicas) {
  const std::int64_t rows = activation.shape.without_last().num_elements();
  F gradient(activation.values.begin(), activation.values.end());
  for (float& g : gradient) g *= 2.0f / static_cast<float>(rows * replicas);
  return gradient;
}

/// Enqueue, dequeue, gradients.
template <class Make>
Activations train(Embedding& engine, std::span<const Batch> batches, Make make) {
  engine.enqueue(batches);
  const Activations activations = engine.dequeue();
  engine.apply_gradients(Gradients(activations, make).all());
  return activations;
}
template <class Make>
Activations train(Embedding& engine, const Batch& batch, Make make) {
  return train(engine, std::span(&batch, 1), make);
}

/// A whole variable, row-major.
inline F variable(const Embedding& engine, std::string_view name, std::int64_t rows,
                  std::int64_t width) {
  F out(rows * width);
  Ids ids;
  for (std::int64_t i = 0; i < rows; ++i) ids.push_back(i);
  engine.read_rows(name, ids, out);
  return out;
}

/// Element by element within rtol = atol = tolerance.
inline void expect_close(const F& got, const std::vector<double>& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
}

}  // namespace embertable::engine_fixture
