#include <fmt/format.h>

#include <span>
#include <utility>

#include "bench/machine/timing.h"
#include "bench/training/lane.h"

namespace embertable::bench {
namespace {

/// The learning rate of every rule, small enough that rows stay near their first values.
constexpr double kSmallRate = 1e-4;

Structure list_of_features(const Load& load) {
  return Structure::list(std::vector<Structure>(load.features.size()));
}

Embedding make_engine(const Load& load, const std::optional<Optimizer>& optimizer,
                      StrategyPtr strategy) {
  std::vector<TablePtr> tables;
  for (std::size_t t = 0; t < load.tables.size(); ++t) {
    const LoadTable& table = load.tables[t];
    tables.push_back(
        make_table({.vocabulary_size = table.rows,
                    .dim = table.dim,
                    .initializer = Initializer::uniform(-0.05, 0.05),
                    .optimizer = optimizer ? *optimizer : Optimizer(table.rule, kSmallRate),
                    .combiner = table.combiner,
                    .name = fmt::format("table{}", t),
                    .row_type = table.row_type}));
  }
  std::vector<FeatureConfig> features;
  for (const LoadFeature& of : load.features) {
    FeatureConfig& feature = features.emplace_back();
    feature.table = tables[of.table];
    feature.output_shape = {load.samples};
  }
  return Embedding(Nested<FeatureConfig>(list_of_features(load), std::move(features)), std::nullopt,
                   std::move(strategy));
}

/// The replicas of a load that a process feeds.
struct OwnReplicas {
  explicit OwnReplicas(const EngineStrategy& strategy)
      : first(static_cast<std::size_t>(strategy.first_replica())),
        count(static_cast<std::size_t>(strategy.local_replicas())) {}

  std::size_t first;
  std::size_t count;
};

std::vector<Batch> batches_of(const Load& load, const OwnReplicas& own, const LoadBatch& batch) {
  std::vector<Batch> replicas;
  for (std::size_t r = own.first; r < own.first + own.count; ++r) {
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

std::size_t floats_of_replica(const Load& load) {
  return load.output_floats() / static_cast<std::size_t>(load.replicas);
}

/// The arrays of one batch's outputs of some replicas, [replicas * features], one after the other.
template <class T>
std::vector<std::span<T>> cut(const Load& load, std::size_t replicas, std::span<T> values) {
  std::vector<std::span<T>> parts;
  for (std::size_t r = 0; r < replicas; ++r) {
    for (std::size_t f = 0; f < load.features.size(); ++f) {
      const std::size_t floats = static_cast<std::size_t>(load.samples) * load.dim_of(f);
      parts.push_back(values.first(floats));
      values = values.subspan(floats);
    }
  }
  return parts;
}

class EngineLane final : public Lane {
 public:
  /// Requires: the strategy has an executor.
  EngineLane(const LoadData& data, const StrategyPtr& strategy,
             const std::optional<Optimizer>& optimizer)
      : executor_(strategy->options().executor),
        engine_(make_engine(data.load, optimizer, strategy)) {
    const OwnReplicas own(*strategy);
    const std::size_t floats = floats_of_replica(data.load), own_floats = own.count * floats;
    memory_ = map_floats(own_floats);
    activations_ = cut(data.load, own.count, std::span(floats_of(memory_), own_floats));
    for (const LoadBatch& batch : data.batches)
      batches_.push_back(batches_of(data.load, own, batch));
    for (std::size_t i = 0; i < data.gradients.size(); ++i) {
      const std::vector<std::span<const float>> parts =
          cut(data.load, own.count, data.gradients[i].subspan(own.first * floats, own_floats));
      std::vector<Nested<Gradient>>& replicas = gradients_.emplace_back();
      for (std::size_t first = 0; first < parts.size(); first += data.load.features.size()) {
        std::vector<Gradient> leaves;
        for (std::size_t f = 0; f < data.load.features.size(); ++f)
          leaves.push_back({.values = parts[first + f], .shape = {}});
        replicas.emplace_back(list_of_features(data.load), std::move(leaves));
      }
    }
    engine_.build();
  }

  StageSeconds step(std::size_t batch, std::size_t gradient) override {
    executor_->run(executor_->workers(), [](const WorkItem&) {});
    StageSeconds seconds;
    seconds.enqueue = seconds_of([&] { engine_.enqueue(batches_[batch]); });
    seconds.forward = seconds_of([&] { engine_.dequeue(activations_); });
    seconds.backward =
        seconds_of([&] { engine_.apply_gradients(gradients_[gradient % gradients_.size()]); });
    return seconds;
  }

  std::vector<TableInfo> tables() const override { return engine_.tables(); }
  std::string digest() const override { return engine_.digest(); }
  Executor& executor() override { return *executor_; }

 private:
  std::shared_ptr<Executor> executor_;
  Embedding engine_;
  Mapping memory_;
  std::vector<std::span<float>> activations_;             ///< [own replicas * features]
  std::vector<std::vector<Batch>> batches_;               ///< by batch, then by own replica
  std::vector<std::vector<Nested<Gradient>>> gradients_;  ///< by gradient, then by own replica
};

}  // namespace

std::unique_ptr<Lane> make_lane(const LoadData& data, int threads,
                                const std::optional<Optimizer>& optimizer) {
  StrategyOptions strategy;
  strategy.replicas_per_host = data.load.replicas;
  strategy.executor = make_thread_pool(threads);
  return std::make_unique<EngineLane>(data, make_strategy(std::move(strategy)), optimizer);
}

std::unique_ptr<Lane> make_lane_of_hosts(const LoadData& data, std::int32_t hosts,
                                         std::shared_ptr<Exchange> exchange) {
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.replicas_per_host = data.load.replicas / hosts;
  strategy.executor = make_inline_executor();  // each host's regions run on its own thread
  strategy.exchange = std::move(exchange);
  return std::make_unique<EngineLane>(data, make_strategy(std::move(strategy)), std::nullopt);
}

}  // namespace embertable::bench
