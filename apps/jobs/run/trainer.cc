#include "apps/jobs/run/trainer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

Initializer first_values(const TableSpec& table) {
  const auto a = static_cast<float>(table.first_a);
  const auto b = static_cast<float>(table.first_b);
  switch (table.first) {
    case TableSpec::First::kZeros:
      return Initializer::zeros();
    case TableSpec::First::kConstant:
      return Initializer::constant(a);
    case TableSpec::First::kUniform:
      return Initializer::uniform(a, b);
    case TableSpec::First::kNormal:
      return Initializer::normal(a, b);
    case TableSpec::First::kTruncatedNormal:
      return Initializer::truncated_normal(a, b);
  }
  return Initializer::zeros();
}

/// Returns features without a shape, as a saved run serves any number of samples.
Nested<FeatureConfig> feature_configs(const Job& job, const Model& model) {
  std::map<std::string, TablePtr> tables;
  for (const TableSpec& table : job.tables) {
    // An empty key space still has a table.
    const std::int64_t rows = named(model.key_spaces(), table.ids).keys.num_rows();
    tables[table.name] = make_table({.vocabulary_size = std::max<std::int64_t>(1, rows),
                                     .dim = table.dim,
                                     .initializer = first_values(table),
                                     .combiner = table.combiner,
                                     .name = table.name,
                                     .replicated = table.replicated,
                                     .row_type = table.row_type});
  }
  std::vector<std::pair<std::string, Nested<FeatureConfig>>> features;
  for (const ModelFeature& feature : model.features()) {
    features.emplace_back(feature.name,
                          FeatureConfig{.table = tables.at(feature.table), .name = feature.name});
  }
  return Nested<FeatureConfig>::map(std::move(features));
}

/// Returns the shapes of the ids of one replica's batch, whose output rows are one axis, also for
/// lists.
Nested<Shape> input_shapes(const std::vector<ModelFeature>& features, std::int64_t samples) {
  std::vector<std::pair<std::string, Nested<Shape>>> shapes;
  for (const ModelFeature& feature : features)
    shapes.emplace_back(feature.name, Shape({samples * feature.width, 1}));
  return Nested<Shape>::map(std::move(shapes));
}

StrategyPtr strategy_of(const Job& job, const std::shared_ptr<Executor>& executor,
                        const std::shared_ptr<Ranks>& ranks) {
  return make_strategy({.hosts = job.strategy.hosts,
                        .replicas_per_host = job.strategy.replicas / job.strategy.hosts,
                        .sharding = job.strategy.sharding,
                        .executor = executor,
                        .exchange = ranks});
}

EmbeddingOptions options_of(const Job& job, const Model& model,
                            std::function<void(std::string_view)> log) {
  EmbeddingOptions options;
  options.log = std::move(log);
  if (model.leaves_rows_out()) options.out_of_range = OutOfRange::kDrop;
  options.variable_batch = true;
  options.seed = job.seed;
  options.queue_capacity = job.schedule.look_ahead + 1;
  options.pipeline_execution_with_tensor_core = job.schedule.pipelined;
  options.tuning = {.bucket_bytes = job.engine.bucket_bytes,
                    .inline_floats = job.engine.inline_floats};
  return options;
}

Optimizer optimizer_of(const Job& job, std::shared_ptr<double> rate) {
  return Optimizer(job.optimizer.rule,
                   LearningRate::dynamic([rate = std::move(rate)] { return *rate; }),
                   job.optimizer.parameters, job.optimizer.options);
}

/// Adds the seconds of its lifetime to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  ~Timed() {
    sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& sum_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<std::int64_t> leaves_of(const Structure& structure,
                                    const std::vector<ModelFeature>& features) {
  const std::vector<std::string>& keys = structure.keys();
  std::vector<std::int64_t> leaves;
  for (const ModelFeature& feature : features)
    leaves.push_back(std::find(keys.begin(), keys.end(), feature.name) - keys.begin());
  return leaves;
}

}  // namespace

std::shared_ptr<Executor> make_executor(std::int32_t threads) {
  const auto cpus = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  return make_thread_pool(threads > 0 ? threads : std::max(1, cpus));
}

Trainer::Trainer(const Job& job, Model& model, std::shared_ptr<Executor> executor,
                 std::shared_ptr<Ranks> ranks, std::function<void(std::string_view)> log)
    : model_(model),
      batch_(job.schedule.batch),
      replicas_(job.strategy.replicas),
      look_ahead_(job.schedule.look_ahead),
      pipelined_(job.schedule.pipelined),
      inline_floats_(job.engine.inline_floats),
      learning_rate_(std::make_shared<double>(job.optimizer.learning_rate)),
      block_samples_(model.block_samples()),
      executor_(std::move(executor)),
      features_(model.features()),
      ranks_(std::move(ranks)),
      strategy_(strategy_of(job, executor_, ranks_)),
      engine_(feature_configs(job, model), optimizer_of(job, learning_rate_), strategy_,
              options_of(job, model, std::move(log))),
      leaf_(leaves_of(engine_.feature_config().structure(), features_)),
      input_(engine_.feature_config().structure(), features_, leaf_,
             batch_ / replicas_ * strategy_->local_replicas(), strategy_->local_replicas()) {
  for (const ModelFeature& feature : features_) {
    dims_.push_back(named(job.tables, feature.table).dim);
    floats_.push_back(dims_.back() * feature.width);
  }
  engine_.build(input_shapes(features_, batch_ / replicas_));
  set_up_memory();
}

void Trainer::set_up_memory() {
  for (const std::int64_t floats : floats_) rows_.emplace_back(batch_ * floats);
  if (ranks_) shared_.emplace(*ranks_, batch_, block_samples_, rows_, floats_);
  const std::int32_t replicas = strategy_->local_replicas();
  targets_.resize(static_cast<std::size_t>(replicas) * features_.size());
  for (std::int32_t r = 0; r < replicas; ++r) {
    gradients_.emplace_back(engine_.feature_config().structure(),
                            std::vector<Gradient>(features_.size()));
  }
  const std::int64_t blocks = (batch_ + block_samples_ - 1) / block_samples_;
  losses_.resize(blocks);
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::size_t f = 0; f < features_.size(); ++f)
      block_rows_.push_back(rows(f, b * block_samples_));
  }
}

/// Returns the samples of a step that this process looks up.
Range Trainer::own_samples(std::int64_t size) const noexcept {
  return shared_ ? shared_->samples(size) : Range{0, size};
}

/// Returns the blocks of a step that this process computes.
Range Trainer::own_blocks(std::int64_t size) const noexcept {
  return shared_ ? shared_->blocks(size) : Range{0, (size + block_samples_ - 1) / block_samples_};
}

void Trainer::train(std::int64_t samples, Position position,
                    const std::function<double(std::int64_t)>& rate,
                    const std::function<bool(const Position&)>& after_step) {
  if (stopped_) throw StateError("a trainer must not train again after it was stopped or failed");
  stopped_ = true;  // until all samples are trained
  std::int64_t enqueued = position.samples;
  const auto look_up = [&](std::int64_t first) {
    for (; enqueued < samples && enqueued <= first + look_ahead_ * batch_; enqueued += batch_)
      enqueue(enqueued, std::min(batch_, samples - enqueued));
    dequeue(std::min(batch_, samples - first));
  };
  looked_up_ = 0;
  while (position.samples < samples) {
    const std::int64_t first = position.samples;
    const std::int64_t size = std::min(batch_, samples - first);
    const double waited = ranks_ ? ranks_->waited() : 0;
    *learning_rate_ = rate(first);
    if (looked_up_ == 0) look_up(first);
    if (!given_.empty()) given_.take(size, rows_);
    position.losses += compute_gradients(first, size);
    apply_gradients();
    position.samples += size;
    looked_up_ = pipelined_ ? std::min(batch_, samples - position.samples) : 0;
    if (looked_up_ > 0) {
      look_up(position.samples);
    } else if (pipelined_) {
      flush();
    }
    if (ranks_) times_.waited += ranks_->waited() - waited;
    if (!after_step(position)) return;
  }
  stopped_ = false;
}

std::map<std::string, DenseTensor> Trainer::looked_up() {
  std::map<std::string, DenseTensor> activations;
  if (looked_up_ == 0) return activations;
  if (shared_) {
    shared_->set_step(engine_.step());
    shared_->gather_rows(looked_up_);
  }
  if (ranks_ && !ranks_->is_first()) return activations;
  for (std::size_t f = 0; f < features_.size(); ++f) {
    DenseTensor& tensor = activations[features_[f].name];
    tensor.shape = {looked_up_ * features_[f].width, dims_[f]};
    tensor.bytes.assign(reinterpret_cast<const char*>(rows_[f].data()),
                        static_cast<std::size_t>(looked_up_ * floats_[f]) * sizeof(float));
  }
  return activations;
}

void Trainer::use_looked_up(std::map<std::string, DenseTensor> activations,
                            const std::filesystem::path& directory) {
  std::vector<GivenActivations::Feature> features;
  for (std::size_t f = 0; f < features_.size(); ++f)
    features.push_back({features_[f].name, features_[f].width, dims_[f]});
  given_ = GivenActivations(std::move(activations), std::move(features), directory);
}

/// Runs the pending update, by reading rows: reading none suffices.
void Trainer::flush() {
  engine_.read_rows(engine_.tables().front().name, std::span<const std::int32_t>(), {});
}

void Trainer::for_each(std::int64_t samples, const Fill& fill, const Use& use, const After& after) {
  const Times training = times_;
  if (shared_) shared_->set_step(engine_.step());
  for (std::int64_t first = 0; first < samples; first += batch_) {
    const std::int64_t size = std::min(batch_, samples - first);
    const Range mine = own_samples(size);
    fill(first + mine.begin, mine.size(), input_.ids());
    engine_.enqueue(input_.cut(mine.size()), {.training = false});
    dequeue(size);
    if (shared_) shared_->fetch_rows(size);
    for_each_block(size, own_blocks(size),
                   [&](std::int64_t index) { use(block(index, first, size)); });
    after(first, size);
  }
  times_ = training;
}

void Trainer::complete(std::int64_t samples, std::span<std::byte> values) {
  if (shared_) shared_->complete(samples, values);
}

void Trainer::divide(std::int64_t count, std::span<std::byte> values, const Compute& compute) {
  if (shared_) return shared_->divide(count, values, compute);
  compute(0, count);
}

/// Fills in ids, on all workers if the model can.
void Trainer::fill(std::int64_t first, std::int64_t samples) {
  const std::span<StepIds> ids = input_.ids();
  if (!model_.fills_parts()) return model_.fill(first, samples, ids);
  part_ids_.clear();
  for (std::int64_t begin = 0; begin < samples; begin += kBlockSamples) {
    for (std::size_t f = 0; f < features_.size(); ++f) {
      ids[f].ids.resize(samples * features_[f].width);
      part_ids_.push_back(ids[f].ids.data() + begin * features_[f].width);
    }
  }
  const std::int64_t parts = (samples + kBlockSamples - 1) / kBlockSamples;
  for_each_block(samples, {0, parts}, [&](std::int64_t part) {
    const std::int64_t begin = part * kBlockSamples;
    model_.fill_part(first + begin, std::min(kBlockSamples, samples - begin),
                     std::span(part_ids_).subspan(static_cast<std::size_t>(part) * features_.size(),
                                                  features_.size()));
  });
}

void Trainer::enqueue(std::int64_t first, std::int64_t samples) {
  const Range mine = own_samples(samples);
  {
    const Timed filling(times_.fill);
    fill(first + mine.begin, mine.size());
  }
  const Timed enqueueing(times_.engine);
  engine_.enqueue(input_.cut(mine.size()));
}

/// Dequeues the activations of a step of `samples` samples into rows_, replica after replica.
void Trainer::dequeue(std::int64_t samples) {
  const Timed dequeueing(times_.engine);
  const std::int64_t per_replica = batch_ / replicas_;
  for (std::int32_t r = 0; r < strategy_->local_replicas(); ++r) {
    const std::int64_t first = std::min(samples, (strategy_->first_replica() + r) * per_replica);
    const std::int64_t count = std::min(samples - first, per_replica);
    for (std::size_t f = 0; f < features_.size(); ++f) {
      targets_[static_cast<std::size_t>(r) * features_.size() +
               static_cast<std::size_t>(leaf_[f])] = {rows(f, first),
                                                      static_cast<std::size_t>(count * floats_[f])};
    }
  }
  engine_.dequeue(targets_);
}

Block Trainer::block(std::int64_t index, std::int64_t first, std::int64_t samples) const {
  const std::int64_t begin = index * block_samples_;
  return {
      .index = index,
      .first = first + begin,
      .samples = std::min(block_samples_, samples - begin),
      .of_step = samples,
      .rows = std::span(block_rows_)
                  .subspan(static_cast<std::size_t>(index) * features_.size(), features_.size())};
}

/// Runs body(index) for these blocks of a step of `samples` samples.
template <class Body>
void Trainer::for_each_block(std::int64_t samples, Range blocks, const Body& body) {
  const std::int64_t floats = std::accumulate(floats_.begin(), floats_.end(), std::int64_t{0});
  if (samples * floats < inline_floats_) {
    for (std::int64_t i = blocks.begin; i < blocks.end; ++i) body(i);
  } else {
    executor_->run(blocks.size(), [&](const WorkItem& item) { body(blocks.begin + item.index); });
  }
}

/// Replaces the activations by the gradients, and lets the model finish the step. Returns the sum
/// of the losses, block after block.
double Trainer::compute_gradients(std::int64_t first, std::int64_t samples) {
  const Timed computing(times_.gradients);
  if (shared_) {
    shared_->set_step(engine_.step() + 1);
    shared_->fetch_rows(samples);
  }
  for_each_block(samples, own_blocks(samples), [&](std::int64_t index) {
    losses_[index] = model_.gradients(block(index, first, samples));
  });
  if (shared_) shared_->share(samples, losses_, model_);
  double sum = 0;
  for (std::int64_t i = 0; i * block_samples_ < samples; ++i) sum += losses_[i];
  model_.finish_step(samples, *learning_rate_);
  return sum;
}

void Trainer::apply_gradients() {
  const Timed applying(times_.engine);
  for (std::size_t r = 0; r < gradients_.size(); ++r) {
    for (std::size_t leaf = 0; leaf < features_.size(); ++leaf) {
      const std::span<const float> values = targets_[r * features_.size() + leaf];
      gradients_[r][static_cast<std::int64_t>(leaf)].values = values;
    }
  }
  engine_.apply_gradients(gradients_);
}

}  // namespace embertable::jobs
