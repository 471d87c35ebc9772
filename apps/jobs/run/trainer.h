#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/jobs/run/given_activations.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/replica_batches.h"
#include "apps/jobs/run/shared_blocks.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"
#include "embertable/checkpoint.h"
#include "embertable/embedding.h"

namespace embertable::jobs {

/// Makes a pool of `threads` threads; 0: one for each CPU.
std::shared_ptr<Executor> make_executor(std::int32_t threads);

/// Trains a job's model step by step on an engine of its own. Where several processes train
/// together, each is one host of the engine, and all make the same calls.
class Trainer final : public Lookups {
 public:
  /// Job and model are borrowed. `ranks`: the processes that are the job's hosts; null: this
  /// process is all of them. `log` receives the engine's warnings.
  Trainer(const Job& job, Model& model, std::shared_ptr<Executor> executor,
          std::shared_ptr<Ranks> ranks = nullptr,
          std::function<void(std::string_view)> log = nullptr);

  /// Position of `train` within its epoch.
  struct Position {
    std::int64_t samples = 0;  ///< done
    double losses = 0;         ///< sum of their losses, each before its own step
  };

  /// Takes a step for each batch of the epoch's samples from `position` on, in their order, at
  /// rate(samples done), as long as after_step(position) returns true. Throws StateError once
  /// after_step has returned false, or a call has thrown: batches may have been enqueued ahead.
  void train(std::int64_t samples, Position position,
             const std::function<double(std::int64_t)>& rate,
             const std::function<bool(const Position&)>& after_step);

  /// Returns the activations of the next batch by feature, [output rows, dim], which were looked up
  /// before the update of this one. Empty unless the run is pipelined and this is an after_step
  /// that is not the last. Of several processes host 0 gets them.
  std::map<std::string, DenseTensor> looked_up();

  /// Makes the first step of the next `train` use these activations of the step in `directory`
  /// instead of looking them up; none: it looks them up. Throws DataLoss for those of other
  /// features or of another dim; `train` does if they are of another number of samples.
  void use_looked_up(std::map<std::string, DenseTensor> activations,
                     const std::filesystem::path& directory);

  /// Seconds of the calling thread that parts of `train` took.
  struct Times {
    double fill = 0;       ///< naming ids: Model::fill
    double engine = 0;     ///< enqueue, dequeue and apply_gradients
    double gradients = 0;  ///< Model::gradients and finish_step: losses, dense layers
    double waited = 0;     ///< in messages between processes, all of the parts together
  };
  const Times& times() const noexcept { return times_; }

  void for_each(std::int64_t samples, const Fill& fill, const Use& use,
                const After& after) override;
  void complete(std::int64_t samples, std::span<std::byte> values) override;
  void divide(std::int64_t count, std::span<std::byte> values, const Compute& compute) override;
  const Embedding& engine() const noexcept override { return engine_; }
  Embedding& engine() noexcept { return engine_; }
  const EngineStrategy& strategy() const noexcept { return *strategy_; }
  Executor& executor() const noexcept override { return *executor_; }

 private:
  void set_up_memory();
  Range own_samples(std::int64_t size) const noexcept;
  Range own_blocks(std::int64_t size) const noexcept;
  void fill(std::int64_t first, std::int64_t samples);
  void enqueue(std::int64_t first, std::int64_t samples);
  void dequeue(std::int64_t samples);
  void flush();
  double compute_gradients(std::int64_t first, std::int64_t samples);
  void apply_gradients();
  template <class Body>
  void for_each_block(std::int64_t samples, Range blocks, const Body& body);
  Block block(std::int64_t index, std::int64_t first, std::int64_t samples) const;
  float* rows(std::size_t feature, std::int64_t sample) {
    return rows_[feature].data() + sample * floats_[feature];
  }

  Model& model_;
  std::int64_t batch_;
  std::int32_t replicas_;
  std::int64_t look_ahead_;
  bool pipelined_;
  std::int64_t inline_floats_;
  std::shared_ptr<double> learning_rate_;
  std::int64_t block_samples_;
  std::shared_ptr<Executor> executor_;
  std::vector<ModelFeature> features_;
  std::shared_ptr<Ranks> ranks_;  ///< null: this process is all hosts
  StrategyPtr strategy_;
  Embedding engine_;
  std::vector<std::int64_t> leaf_;    ///< by feature: its place in the engine's structure
  std::vector<std::int64_t> dims_;    ///< by feature
  std::vector<std::int64_t> floats_;  ///< by feature: width * dim, those of a sample
  ReplicaBatches input_;
  std::vector<std::int32_t*> part_ids_;      ///< [parts, features]: where a part's ids go
  std::vector<std::vector<float>> rows_;     ///< by feature: [batch, floats]; gradients after that
  std::vector<float*> block_rows_;           ///< [blocks, features]: where a block's rows start
  std::optional<SharedBlocks> shared_;       ///< where the hosts are processes
  std::vector<std::span<float>> targets_;    ///< [replicas of this process, leaves]
  std::vector<Nested<Gradient>> gradients_;  ///< by replica of this process
  std::vector<double> losses_;               ///< by block
  std::int64_t looked_up_ = 0;  ///< samples of the next batch, whose activations are in rows_
  bool stopped_ = false;        ///< a call of `train` may have left batches in the queue
  GivenActivations given_;      ///< instead of the next lookup
  Times times_;
};

}  // namespace embertable::jobs
