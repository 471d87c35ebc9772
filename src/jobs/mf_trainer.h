#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/embedding.h"
#include "jobs/data_set.h"
#include "jobs/job.h"
#include "jobs/metrics.h"
#include "jobs/mf.h"
#include "jobs/step_input.h"

namespace embertable::jobs {

/// A pool of so many threads; 0: one for each CPU.
std::shared_ptr<Executor> make_executor(std::int32_t threads);

/// The job's model `mf` on an engine of its own.
class MfTrainer {
 public:
  /// `mean`: of the training labels. `data` is borrowed.
  MfTrainer(const Job& job, const DataSet& data, float mean, std::shared_ptr<Executor> executor);

  /// Where `train` stands in its samples.
  struct Position {
    std::int64_t samples = 0;  ///< done
    double squares = 0;        ///< sum of error^2 of those
  };

  /// Takes a step for each batch of the samples from `position` on, in their order, as long as
  /// after_step(position) returns true. May be called again with what was left.
  void train(const Samples& samples, Position position,
             const std::function<bool(const Position&)>& after_step);

  /// Pipelined, in an after_step that is not the last: the activations of the next batch by
  /// feature, [samples, dim], which were looked up before the update of this one. Otherwise empty.
  std::map<std::string, DenseTensor> looked_up() const;

  /// The first step of the next `train` takes these for what it looks up. Throws DataLoss if a
  /// feature is missing or has another shape, then.
  void use_looked_up(std::map<std::string, DenseTensor> activations) {
    given_ = std::move(activations);
  }

  /// Looks at the samples, changes nothing.
  void measure(const Samples& samples, RatingMetrics& metrics);

  void set_learning_rate(double rate) { *learning_rate_ = rate; }
  Embedding& engine() noexcept { return engine_; }
  const Embedding& engine() const noexcept { return engine_; }

 private:
  /// Samples that one work item computes.
  static constexpr std::int64_t kBlock = 256;

  void set_up_memory(const Structure& features);
  void enqueue(const SampleRange& samples, bool training, std::span<float> labels);
  void dequeue(std::int64_t samples);
  void take_given(std::int64_t samples);
  void flush();
  double compute_gradients(std::int64_t samples, const float* labels);
  void apply_gradients();
  template <class Body>
  void for_each_block(std::int64_t samples, const Body& body);
  MfBlock block(std::int64_t index, std::int64_t samples, const float* labels);
  float* rows(std::int32_t feature, std::int64_t sample);

  std::int64_t batch_;
  std::int32_t replicas_;
  std::int64_t look_ahead_;
  bool pipelined_;
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
  std::int64_t looked_up_ = 0;     ///< samples of the next batch, whose activations are in rows_
  std::map<std::string, DenseTensor> given_;
};

}  // namespace embertable::jobs
