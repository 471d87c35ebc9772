#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "embertable/embedding.h"
#include "jobs/data_set.h"
#include "jobs/job.h"
#include "jobs/metrics.h"
#include "jobs/mf.h"
#include "jobs/step_input.h"

namespace embertable::jobs {

/// The job's model `mf` on an engine of its own.
class MfTrainer {
 public:
  /// `mean`: of the training labels. `data` is borrowed.
  MfTrainer(const Job& job, const DataSet& data, float mean, std::shared_ptr<Executor> executor);

  /// Takes a step for each batch of the samples, in their order. after_step(samples so far, sum of
  /// error^2 so far).
  void train(const Samples& samples, const std::function<void(std::int64_t, double)>& after_step);

  /// Looks at the samples, changes nothing.
  void measure(const Samples& samples, RatingMetrics& metrics);

  void set_learning_rate(double rate) { *learning_rate_ = rate; }
  Embedding& engine() noexcept { return engine_; }

 private:
  /// Samples that one work item computes.
  static constexpr std::int64_t kBlock = 256;

  void set_up_memory(const Structure& features);
  void enqueue(const SampleRange& samples, bool training, std::span<float> labels);
  void dequeue(std::int64_t samples);
  double compute_gradients(std::int64_t samples, const float* labels);
  void apply_gradients();
  template <class Body>
  void for_each_block(std::int64_t samples, const Body& body);
  MfBlock block(std::int64_t index, std::int64_t samples, const float* labels);
  float* rows(std::int32_t feature, std::int64_t sample);

  std::int64_t batch_;
  std::int32_t replicas_;
  std::int64_t look_ahead_;
  std::int64_t inline_floats_;
  float mean_;
  float regularization_;
  SimdLevel level_ = simd_level();
  std::shared_ptr<double> learning_rate_;
  std::shared_ptr<Executor> executor_;
  Embedding engine_;
  StepInput input_;
  std::int32_t user_, item_, user_bias_, item_bias_;  ///< features in flatten order; -1: none
  std::vector<std::int32_t> sides_;
  std::vector<std::int32_t> dims_;        ///< by feature
  std::vector<std::vector<float>> rows_;  ///< by feature: [batch, dim], activations, then gradients
  std::vector<std::span<float>> targets_;    ///< [replicas * features]
  std::vector<Nested<Gradient>> gradients_;  ///< by replica
  std::vector<std::vector<float>> labels_;   ///< of the batches under way, [look_ahead + 1][batch]
  std::vector<float> predictions_;
  std::vector<double> squares_;    ///< by block
  std::vector<float*> side_rows_;  ///< [blocks, sides], where a block's rows start
};

}  // namespace embertable::jobs
