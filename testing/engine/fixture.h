#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "embertable/embertable.h"
#include "testing/refusal.h"

namespace embertable {

/// The tables, features and data of the numbered engine cases: `video` (8 x 4, sum, row r = 4r,
/// 4r+1, 4r+2, 4r+3) and `user` (16 x 2, mean, row r = 2r, 2r+1); features watched and favorited
/// look up video, friends looks up user.
namespace engine_fixture {

inline Initializer counting() {
  return Initializer::function([](const RowRange& range, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(range.first_row * range.dim + static_cast<std::int64_t>(i));
  });
}

inline TablePtr video() {
  return make_table({.vocabulary_size = 8,
                     .dim = 4,
                     .initializer = counting(),
                     .optimizer = {},
                     .combiner = Combiner::kSum,
                     .name = "video"});
}
inline TablePtr user() {
  return make_table({.vocabulary_size = 16,
                     .dim = 2,
                     .initializer = counting(),
                     .optimizer = {},
                     .combiner = Combiner::kMean,
                     .name = "user"});
}

inline FeatureConfig feature(TablePtr table, std::int64_t max_sequence_length = 0,
                             Shape output_shape = {}) {
  FeatureConfig config;
  config.table = std::move(table);
  config.max_sequence_length = max_sequence_length;
  config.output_shape = output_shape;
  return config;
}

inline Nested<FeatureConfig> features(TablePtr videos = video(), TablePtr users = user()) {
  return Nested<FeatureConfig>::tuple({feature(videos), feature(videos), feature(users)});
}

/// Ids by sample, in memory that outlives the batch made of it.
class Rows {
 public:
  explicit Rows(std::vector<std::vector<std::int64_t>> samples) : samples_(std::move(samples)) {
    splits_.push_back(0);
    std::int64_t width = 0;
    for (std::size_t row = 0; row < samples_.size(); ++row) {
      for (std::size_t column = 0; column < samples_[row].size(); ++column) {
        values_.push_back(samples_[row][column]);
        indices_.push_back(static_cast<std::int64_t>(row));
        indices_.push_back(static_cast<std::int64_t>(column));
      }
      width = std::max(width, static_cast<std::int64_t>(samples_[row].size()));
      splits_.push_back(static_cast<std::int64_t>(values_.size()));
    }
    dense_shape_ = Shape{static_cast<std::int64_t>(samples_.size()), width};
  }

  RaggedIds ragged() const { return {splits_, values_}; }
  SparseIds sparse() const { return {indices_, values_, dense_shape_}; }
  const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::vector<std::int64_t>> samples_;
  std::vector<std::int64_t> values_, splits_, indices_;
  Shape dense_shape_;
};

/// The four samples of the cases, of which replica i takes 2i and 2i+1 modulo 4.
struct Data {
  std::vector<std::vector<std::int64_t>> watched = {{0}, {0, 1}, {0, 1}, {1}};
  std::vector<std::vector<std::int64_t>> favorited = {{0, 1}, {1}, {0}, {0, 1}};
  std::vector<std::vector<std::int64_t>> friends = {{3}, {0, 1, 2}, {3}, {0, 1, 2}};
};

inline std::vector<std::vector<std::int64_t>> two_samples(
    const std::vector<std::vector<std::int64_t>>& all, std::int32_t replica) {
  const std::size_t first = static_cast<std::size_t>(2 * replica) % 4;
  return {all[first], all[first + 1]};
}

/// One replica's batch, owning its arrays.
struct OwnedBatch {
  Rows watched, favorited, friends;
  explicit OwnedBatch(std::int32_t replica, const Data& data = {})
      : watched(two_samples(data.watched, replica)),
        favorited(two_samples(data.favorited, replica)),
        friends(two_samples(data.friends, replica)) {}

  Batch ragged() const {
    return {Nested<FeatureIds>::tuple({FeatureIds(watched.ragged()), FeatureIds(favorited.ragged()),
                                       FeatureIds(friends.ragged())}),
            {}};
  }
  Batch sparse() const {
    return {Nested<FeatureIds>::tuple({FeatureIds(watched.sparse()), FeatureIds(favorited.sparse()),
                                       FeatureIds(friends.sparse())}),
            {}};
  }
};

inline std::vector<float> values(const Activations& activations, std::int64_t feature,
                                 std::int32_t replica = 0) {
  const std::span<const float> span = activations(feature, replica).values;
  return {span.begin(), span.end()};
}

inline StrategyPtr accelerator(std::int32_t replicas = 1, std::int32_t hosts = 1,
                               Sharding sharding = Sharding::kDiv) {
  StrategyOptions options;
  options.hosts = hosts;
  options.replicas_per_host = replicas / hosts;
  options.sharding = sharding;
  options.executor = make_inline_executor();
  // Short where a test may wait for an absent replica; hosts must not run into it on a busy
  // machine.
  options.timeout = hosts == 1 ? std::chrono::milliseconds(200) : std::chrono::seconds(60);
  return make_strategy(options);
}

inline Optimizer sgd(double rate) { return Optimizer("sgd", rate); }

inline Embedding engine_with(StrategyPtr strategy, Nested<FeatureConfig> of = features(),
                             const Optimizer& optimizer = sgd(0.1), EmbeddingOptions options = {}) {
  return Embedding(std::move(of), optimizer, std::move(strategy), std::move(options));
}

/// A tuple with one shape for each of the fixture's features.
inline Nested<Shape> three(Shape a, Shape b, Shape c) {
  return Nested<Shape>::tuple({Nested<Shape>(a), Nested<Shape>(b), Nested<Shape>(c)});
}

inline std::vector<Batch> ragged_batches(const std::vector<OwnedBatch>& owned) {
  std::vector<Batch> batches;
  for (const OwnedBatch& batch : owned) batches.push_back(batch.ragged());
  return batches;
}

inline std::vector<OwnedBatch> owned(std::int32_t replicas) {
  std::vector<OwnedBatch> all;
  for (std::int32_t r = 0; r < replicas; ++r) all.emplace_back(r);
  return all;
}

/// Gradients of every activation, all `value`.
inline Nested<Gradient> all(const Activations& activations,
                            std::vector<std::vector<float>>& storage, float value,
                            std::int32_t replica = 0) {
  std::vector<Gradient> leaves;
  for (std::int64_t i = 0; i < activations.features(); ++i) {
    storage.emplace_back(activations(i, replica).values.size(), value);
    leaves.push_back({storage.back(), activations(i, replica).shape});
  }
  return Nested<Gradient>(activations.structure(), std::move(leaves));
}

inline std::vector<float> row(const Embedding& engine, std::string_view variable, std::int64_t id,
                              std::size_t width) {
  std::vector<float> out(width);
  const std::vector<std::int64_t> ids = {id};
  engine.read_rows(variable, ids, out);
  return out;
}

}  // namespace engine_fixture
}  // namespace embertable
