#include "bench/training/lane.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "bench/machine/timing.h"

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

std::vector<Batch> batches_of(const Load& load, const EngineStrategy& strategy,
                              const LoadBatch& batch) {
  std::vector<Batch> replicas;
  const std::int64_t first = strategy.first_replica();
  for (std::int64_t r = first; r < first + strategy.local_replicas(); ++r) {
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

}  // namespace

Lane::Lane(const LoadData& data, const StrategyPtr& strategy,
           const std::optional<Optimizer>& optimizer)
    : executor_(strategy->options().executor),
      engine_(make_engine(data.load, optimizer, strategy)) {
  const Load& load = data.load;
  const auto replicas = static_cast<std::size_t>(strategy->local_replicas());
  const std::size_t floats_of_replica = load.output_floats() / load.replicas;
  const std::size_t floats = replicas * floats_of_replica;
  memory_ = map_floats(floats);
  activations_ = cut(load, replicas, std::span(floats_of(memory_), floats));
  for (const LoadBatch& batch : data.batches)
    batches_.push_back(batches_of(load, *strategy, batch));
  for (std::size_t i = 0; i < data.gradients.size(); ++i) {
    const std::vector<std::span<const float>> parts =
        cut(load, replicas,
            data.gradients[i].subspan(strategy->first_replica() * floats_of_replica, floats));
    std::vector<Nested<Gradient>>& of_replicas = gradients_.emplace_back();
    for (std::size_t first = 0; first < parts.size(); first += load.features.size()) {
      std::vector<Gradient> leaves;
      for (std::size_t f = 0; f < load.features.size(); ++f)
        leaves.push_back({.values = parts[first + f], .shape = {}});
      of_replicas.emplace_back(list_of_features(load), std::move(leaves));
    }
  }
  engine_.build();
}

StageSeconds Lane::take_step(std::size_t batch, std::size_t gradient) {
  executor_->run(executor_->workers(), [](const WorkItem&) {});
  StageSeconds seconds;
  seconds.enqueue = seconds_of([&] { engine_.enqueue(batches_[batch]); });
  seconds.forward = seconds_of([&] { engine_.dequeue(activations_); });
  seconds.backward =
      seconds_of([&] { engine_.apply_gradients(gradients_[gradient % gradients_.size()]); });
  return seconds;
}

StageSeconds Lane::end_pass(bool counts) {
  if (counts) passes_.push_back(pass_);
  return std::exchange(pass_, {});
}

LaneSeconds Lane::median() const {
  const auto of = [this](auto part) {
    std::vector<double> values;
    for (const StageSeconds& pass : passes_) values.push_back(std::invoke(part, pass));
    return bench::median(std::move(values));
  };
  return {.stages = {.enqueue = of(&StageSeconds::enqueue),
                     .forward = of(&StageSeconds::forward),
                     .backward = of(&StageSeconds::backward)},
          .step = of(&StageSeconds::step)};
}

Lane make_lane(const LoadData& data, int threads, const std::optional<Optimizer>& optimizer) {
  return Lane(data,
              make_strategy(
                  {.replicas_per_host = data.load.replicas, .executor = make_thread_pool(threads)}),
              optimizer);
}

Lane make_lane_of_hosts(const LoadData& data, std::int32_t hosts,
                        std::shared_ptr<Exchange> exchange) {
  StrategyOptions strategy = {
      .hosts = hosts,
      .replicas_per_host = data.load.replicas / hosts,
      .executor = make_inline_executor(),  // each host's regions run on its own thread
      .exchange = std::move(exchange)};
  return Lane(data, make_strategy(std::move(strategy)), std::nullopt);
}

}  // namespace embertable::bench
