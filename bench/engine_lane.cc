#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/engine_step.h"
#include "bench/lane.h"
#include "embertable/embedding.h"

namespace embertable::bench {
namespace {

/// A table whose rows start with fill_initial_row.
FeatureConfig make_feature(const Workload& workload, std::int32_t t) {
  const auto fill = [t](const RowRange& range, std::span<float> out) {
    const auto dim = static_cast<std::size_t>(range.dim);
    for (std::int64_t r = 0; r < range.rows; ++r) {
      fill_initial_row(t, range.first_row + r, out.subspan(static_cast<std::size_t>(r) * dim, dim));
    }
  };
  FeatureConfig feature;
  feature.table = make_table({.vocabulary_size = workload.rows,
                              .dim = workload.dim,
                              .initializer = Initializer::function(fill),
                              .combiner = Combiner::kSum,
                              .name = "table" + std::to_string(t)});
  feature.output_shape = {workload.samples};
  return feature;
}

Structure list_of_leaves(std::int32_t count) {
  return Structure::list(std::vector<Structure>(count));
}

Optimizer usual_optimizer() {
  return Optimizer(
      "rowwise_adagrad", double{kLearningRate},
      {{"epsilon", double{kEpsilon}}, {"initial_accumulator_value", double{kInitialSlot}}});
}

Embedding make_engine(const Workload& workload, const Structure& structure,
                      const Optimizer& optimizer, std::shared_ptr<Executor> executor) {
  std::vector<FeatureConfig> features;
  for (std::int32_t t = 0; t < workload.tables; ++t) features.push_back(make_feature(workload, t));
  StrategyOptions options;
  options.executor = std::move(executor);
  return Embedding(Nested<FeatureConfig>(structure, std::move(features)), optimizer,
                   make_strategy(std::move(options)));
}

/// Activations and gradients are [tables, samples, dim]: one array a feature.
class EngineLane : public Lane {
 public:
  EngineLane(const LaneInput& input, const Optimizer& optimizer)
      : input_(input),
        structure_(list_of_leaves(input.workload.tables)),
        executor_(make_thread_pool(input.threads)),
        engine_(make_engine(input.workload, structure_, optimizer, executor_)) {
    const std::size_t feature_floats = offset(1, 0);
    for (const WorkloadBatch& batch : input.batches) {
      std::vector<FeatureIds> ids;
      for (std::size_t t = 0; t < num_tables(); ++t) {
        ids.push_back(RaggedIds{.row_splits = batch.table_splits(t), .values = batch.table_ids(t)});
      }
      batches_.push_back({.features = Nested<FeatureIds>(structure_, std::move(ids))});
    }
    for (const std::span<const float> values : input.gradients) {
      std::vector<Gradient> gradients;
      for (std::size_t t = 0; t < num_tables(); ++t) {
        gradients.push_back({.values = values.subspan(t * feature_floats, feature_floats)});
      }
      gradients_.emplace_back(structure_, std::move(gradients));
    }
    for (std::size_t t = 0; t < num_tables(); ++t) {
      activations_.push_back(input.activations.subspan(t * feature_floats, feature_floats));
    }
    engine_.build();
  }

  StageSeconds step(std::size_t batch, std::size_t gradient) override {
    return timed_step(*executor_, engine_, {&batches_[batch], 1}, activations_,
                      {&gradients_[gradient], 1});
  }

  std::size_t offset(std::int32_t table, std::int32_t sample) const override {
    const Workload& workload = input_.workload;
    return (static_cast<std::size_t>(table) * static_cast<std::size_t>(workload.samples) +
            static_cast<std::size_t>(sample)) *
           static_cast<std::size_t>(workload.dim);
  }

  float read_row(std::int32_t table, std::int64_t row, std::span<float> out) const override {
    const std::string name = "table" + std::to_string(table);
    const std::vector<std::int64_t> ids = {row};
    float slot = 0;
    engine_.read_rows(name, ids, out);
    engine_.read_rows(name + "/accumulators", ids, {&slot, 1});
    return slot;
  }

 private:
  std::size_t num_tables() const { return static_cast<std::size_t>(input_.workload.tables); }

  LaneInput input_;
  Structure structure_;
  std::shared_ptr<Executor> executor_;
  Embedding engine_;
  std::vector<Batch> batches_;
  std::vector<Nested<Gradient>> gradients_;
  std::vector<std::span<float>> activations_;
};

}  // namespace

std::unique_ptr<Lane> make_engine_lane(const LaneInput& input) {
  return make_engine_lane(input, usual_optimizer());
}

std::unique_ptr<Lane> make_engine_lane(const LaneInput& input, const Optimizer& optimizer) {
  return std::make_unique<EngineLane>(input, optimizer);
}

}  // namespace embertable::bench
