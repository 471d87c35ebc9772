#include "bench/load_lane.h"

#include <fmt/format.h>

#include <utility>

#include "bench/engine_step.h"
#include "embertable/custom_rule.h"

namespace embertable::bench {
namespace {

Structure list_of_features(const Load& load) {
  return Structure::list(std::vector<Structure>(load.features.size()));
}

/// Rates are small enough that rows stay near their first values.
constexpr double kSmallRate = 1e-4;

Embedding make_engine(const Load& load, const LoadLaneOptions& options,
                      std::shared_ptr<Executor> executor) {
  std::vector<TablePtr> tables;
  for (std::size_t t = 0; t < load.tables.size(); ++t) {
    const LoadTable& table = load.tables[t];
    tables.push_back(make_table(
        {.vocabulary_size = table.rows,
         .dim = table.dim,
         .initializer = Initializer::uniform(-0.05, 0.05),
         .optimizer = options.optimizer ? *options.optimizer : Optimizer(table.rule, kSmallRate),
         .combiner = table.combiner,
         .name = fmt::format("table{}", t)}));
  }
  std::vector<FeatureConfig> features;
  for (const LoadFeature& of : load.features) {
    FeatureConfig feature;
    feature.table = tables[of.table];
    feature.output_shape = {load.samples};
    features.push_back(std::move(feature));
  }
  StrategyOptions strategy;
  strategy.replicas_per_host = load.replicas;
  strategy.executor = std::move(executor);
  return Embedding(Nested<FeatureConfig>(list_of_features(load), std::move(features)), std::nullopt,
                   make_strategy(std::move(strategy)));
}

std::vector<Batch> batches_of(const Load& load, const LoadBatch& batch) {
  std::vector<Batch> replicas;
  for (std::size_t r = 0; r < static_cast<std::size_t>(load.replicas); ++r) {
    std::vector<FeatureIds> ids;
    std::vector<FeatureWeights> weights;
    for (std::size_t f = 0; f < load.features.size(); ++f) {
      const LoadIds& of = batch[r * load.features.size() + f];
      ids.push_back(RaggedIds{.row_splits = of.splits, .values = of.ids});
      weights.push_back(load.features[f].weighted ? FeatureWeights(RaggedWeights{of.weights})
                                                  : FeatureWeights());
    }
    replicas.push_back(
        {.features = Nested<FeatureIds>(list_of_features(load), std::move(ids)),
         .weights = Nested<FeatureWeights>(list_of_features(load), std::move(weights))});
  }
  return replicas;
}

/// The arrays of one batch's outputs, [replicas * features], one after the other.
template <class T>
std::vector<std::span<T>> cut(const Load& load, std::span<T> values) {
  std::vector<std::span<T>> parts;
  for (std::int32_t r = 0; r < load.replicas; ++r) {
    for (std::size_t f = 0; f < load.features.size(); ++f) {
      const std::size_t floats =
          static_cast<std::size_t>(load.samples) * static_cast<std::size_t>(load.dim_of(f));
      parts.push_back(values.first(floats));
      values = values.subspan(floats);
    }
  }
  return parts;
}

}  // namespace

LoadLane::LoadLane(const Load& load, std::span<const LoadBatch> batches,
                   std::span<const std::span<const float>> gradients,
                   const LoadLaneOptions& options)
    : executor_(make_thread_pool(options.threads)),
      engine_(make_engine(load, options, executor_)),
      memory_(load.output_floats() * sizeof(float)),
      activations_(cut(load, std::span(memory_.as<float>(), load.output_floats()))) {
  for (const LoadBatch& batch : batches) batches_.push_back(batches_of(load, batch));
  for (const std::span<const float> values : gradients) {
    const std::vector<std::span<const float>> parts = cut(load, values);
    std::vector<Nested<Gradient>>& replicas = gradients_.emplace_back();
    for (std::size_t first = 0; first < parts.size(); first += load.features.size()) {
      std::vector<Gradient> leaves;
      for (std::size_t f = 0; f < load.features.size(); ++f)
        leaves.push_back({.values = parts[first + f], .shape = {}});
      replicas.emplace_back(list_of_features(load), std::move(leaves));
    }
  }
  engine_.build();
}

StageSeconds LoadLane::step(std::size_t batch, std::size_t gradient) {
  return timed_step(*executor_, engine_, batches_[batch], activations_, gradients_[gradient]);
}

Optimizer idle_optimizer() {
  CustomRule rule;
  rule.function = CustomRule::Tiles([](const CustomTile&) {});
  return Optimizer::custom(rule);
}

}  // namespace embertable::bench
