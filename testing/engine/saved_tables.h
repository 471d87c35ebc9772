#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "testing/engine/batches.h"
#include "testing/temporary_directory.h"

namespace embertable::engine_fixture {

/// The fixture's tables, every element of the rows `value`.
inline Nested<FeatureConfig> constant_features(float value) {
  const auto table = [&](const TablePtr& like) {
    TableConfig config = *like;
    config.initializer = Initializer::constant(value);
    return make_table(config);
  };
  return features(table(video()), table(user()));
}

/// The fixture's tables, whose rows must not be initialized.
inline Nested<FeatureConfig> features_of_no_initializer() {
  const auto table = [&](const TablePtr& like) {
    TableConfig config = *like;
    config.initializer = Initializer::function([](const RowRange&, std::span<float>) {
      throw std::runtime_error("this initializer must not run");
    });
    return make_table(config);
  };
  return features(table(video()), table(user()));
}

inline Optimizer adagrad() {
  return Optimizer("adagrad", 0.1, {{"initial_accumulator_value", 0.1}});
}

/// One step of the fixture's batches with gradients of the cases' loss.
inline void train_once(Embedding& engine, std::int32_t replicas) {
  const auto data = owned(replicas);
  train(engine, ragged_batches(data),
        [&](const Activation& activation, std::int64_t, std::int32_t) {
          return loss_gradient(activation, replicas);
        });
}

/// A run directory with step 1 of an engine: the fixture trained once by Adagrad.
class SavedStep {
 public:
  explicit SavedStep(std::int32_t replicas = 1, std::int32_t hosts = 1,
                     Sharding sharding = Sharding::kDiv, const Optimizer& optimizer = adagrad())
      : engine(engine_with(accelerator(replicas, hosts, sharding), features(), optimizer)) {
    train_once(engine, replicas);
    step = engine.save(run());
  }

  std::filesystem::path run() const { return temporary_.path() / "run"; }

  Embedding engine;  ///< the engine that was saved
  std::filesystem::path step;

 private:
  TemporaryDirectory temporary_;
};

}  // namespace embertable::engine_fixture
