#include "jobs/mf_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

Nested<FeatureConfig> feature_configs(const Job& job, const DataSet& data) {
  std::vector<TablePtr> tables;
  for (const TableSpec& table : job.tables) {
    // An empty column still is a table.
    tables.push_back(make_table({.vocabulary_size = std::max(1, data.column(table.ids).keys.size()),
                                 .dim = table.dim,
                                 .initializer = first_values(table),
                                 .combiner = table.combiner,
                                 .name = table.name}));
  }
  std::vector<std::pair<std::string, Nested<FeatureConfig>>> features;
  for (const FeatureSpec& feature : job.features) {
    const auto table =
        static_cast<std::size_t>(&named(job.tables, feature.table) - job.tables.data());
    features.emplace_back(feature.name,
                          FeatureConfig{.table = tables[table], .name = feature.name});
  }
  return Nested<FeatureConfig>::map(std::move(features));
}

std::vector<const IdColumn*> feature_columns(const Job& job, const DataSet& data,
                                             const Structure& features) {
  std::vector<const IdColumn*> columns;
  for (const std::string& name : features.keys()) {
    columns.push_back(&data.column(named(job.tables, named(job.features, name).table).ids));
  }
  return columns;
}

std::int32_t feature_index(const Structure& features, const std::string& name) {
  const std::vector<std::string>& keys = features.keys();
  const auto found = std::find(keys.begin(), keys.end(), name);
  return found == keys.end() ? -1 : static_cast<std::int32_t>(found - keys.begin());
}

StrategyPtr strategy_of(const Job& job, const std::shared_ptr<Executor>& executor) {
  return make_strategy({.hosts = job.strategy.hosts,
                        .replicas_per_host = job.strategy.replicas / job.strategy.hosts,
                        .sharding = job.strategy.sharding,
                        .executor = executor});
}

EmbeddingOptions options_of(const Job& job) {
  EmbeddingOptions options;
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

}  // namespace

std::shared_ptr<Executor> make_executor(std::int32_t threads) {
  const auto cpus = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  return make_thread_pool(threads > 0 ? threads : std::max(1, cpus));
}

MfTrainer::MfTrainer(const Job& job, const DataSet& data, float mean,
                     std::shared_ptr<Executor> executor)
    : batch_(job.schedule.batch),
      replicas_(job.strategy.replicas),
      look_ahead_(job.schedule.look_ahead),
      pipelined_(job.schedule.pipelined),
      inline_floats_(job.engine.inline_floats),
      mean_(mean),
      regularization_(static_cast<float>(job.model.regularization)),
      learning_rate_(std::make_shared<double>(job.optimizer.learning_rate)),
      executor_(std::move(executor)),
      engine_(feature_configs(job, data), optimizer_of(job, learning_rate_),
              strategy_of(job, executor_), options_of(job)),
      input_(engine_.feature_config().structure(),
             feature_columns(job, data, engine_.feature_config().structure()), batch_, replicas_) {
  const Structure& features = engine_.feature_config().structure();
  user_ = feature_index(features, job.model.user);
  item_ = feature_index(features, job.model.item);
  user_bias_ = feature_index(features, job.model.user_bias);
  item_bias_ = feature_index(features, job.model.item_bias);
  for (const std::string& side : job.model.sides) sides_.push_back(feature_index(features, side));
  for (const FeatureConfig& feature : engine_.feature_config().leaves())
    dims_.push_back(feature.table->dim);
  engine_.build(batch_ / replicas_);
  set_up_memory(features);
}

void MfTrainer::set_up_memory(const Structure& features) {
  for (const std::int32_t dim : dims_) rows_.emplace_back(static_cast<std::size_t>(batch_ * dim));
  targets_.resize(static_cast<std::size_t>(replicas_) * dims_.size());
  for (std::int32_t r = 0; r < replicas_; ++r)
    gradients_.emplace_back(features, std::vector<Gradient>(dims_.size()));
  labels_.assign(static_cast<std::size_t>(look_ahead_) + 1,
                 std::vector<float>(static_cast<std::size_t>(batch_)));
  predictions_.resize(static_cast<std::size_t>(batch_));
  const std::int64_t blocks = (batch_ + kBlock - 1) / kBlock;
  squares_.resize(static_cast<std::size_t>(blocks));
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (const std::int32_t side : sides_) side_rows_.push_back(rows(side, b * kBlock));
  }
}

float* MfTrainer::rows(std::int32_t feature, std::int64_t sample) {
  if (feature < 0) return nullptr;
  const auto f = static_cast<std::size_t>(feature);
  return rows_[f].data() + sample * dims_[f];
}

void MfTrainer::train(const Samples& samples, Position position,
                      const std::function<bool(const Position&)>& after_step) {
  const std::int64_t count = samples.size();
  std::int64_t enqueued = position.samples;
  const auto labels_at = [&](std::int64_t first) -> std::vector<float>& {
    return labels_[static_cast<std::size_t>(first / batch_) % labels_.size()];
  };
  const auto look_up = [&](std::int64_t first) {
    for (; enqueued < count && enqueued <= first + look_ahead_ * batch_; enqueued += batch_) {
      enqueue({samples, enqueued, std::min(batch_, count - enqueued)}, true, labels_at(enqueued));
    }
    dequeue(std::min(batch_, count - first));
  };
  looked_up_ = 0;
  while (position.samples < count) {
    const std::int64_t first = position.samples;
    const std::int64_t size = std::min(batch_, count - first);
    if (looked_up_ == 0) look_up(first);
    if (!given_.empty()) take_given(size);
    position.squares += compute_gradients(size, labels_at(first).data());
    apply_gradients();
    position.samples += size;
    looked_up_ = pipelined_ ? std::min(batch_, count - position.samples) : 0;
    if (looked_up_ > 0) {
      look_up(position.samples);
    } else if (pipelined_) {
      flush();
    }
    if (!after_step(position)) return;
  }
}

std::map<std::string, DenseTensor> MfTrainer::looked_up() const {
  std::map<std::string, DenseTensor> activations;
  if (looked_up_ == 0) return activations;
  const std::vector<std::string>& names = engine_.feature_config().structure().keys();
  for (std::size_t f = 0; f < dims_.size(); ++f) {
    DenseTensor& tensor = activations[names[f]];
    tensor.shape = {looked_up_, dims_[f]};
    tensor.bytes.assign(reinterpret_cast<const char*>(rows_[f].data()),
                        static_cast<std::size_t>(looked_up_ * dims_[f]) * sizeof(float));
  }
  return activations;
}

/// Puts the given activations in the place of those that were looked up.
void MfTrainer::take_given(std::int64_t samples) {
  const std::vector<std::string>& names = engine_.feature_config().structure().keys();
  for (std::size_t f = 0; f < dims_.size(); ++f) {
    const DenseTensor& tensor = given_[names[f]];
    if (tensor.dtype != "F32" || tensor.shape != std::vector<std::int64_t>{samples, dims_[f]}) {
      throw DataLoss(
          fmt::format("the activations of feature '{}' must be F32 [{}, {}], got {} [{}]", names[f],
                      samples, dims_[f], tensor.dtype, fmt::join(tensor.shape, ", ")));
    }
    std::memcpy(rows_[f].data(), tensor.bytes.data(), tensor.bytes.size());
  }
  given_.clear();
}

/// Makes the pending update. Reading rows does, even none.
void MfTrainer::flush() {
  engine_.read_rows(engine_.tables().front().name, std::span<const std::int32_t>(), {});
}

void MfTrainer::measure(const Samples& samples, RatingMetrics& metrics) {
  std::vector<float>& labels = labels_.front();
  for (std::int64_t first = 0; first < samples.size(); first += batch_) {
    const std::int64_t size = std::min(batch_, samples.size() - first);
    enqueue({samples, first, size}, false, labels);
    dequeue(size);
    for_each_block(size, [&](std::int64_t index) {
      mf_predict(block(index, size, labels.data()), predictions_.data() + index * kBlock, level_);
    });
    const auto count = static_cast<std::size_t>(size);
    metrics.add(std::span(predictions_).first(count), std::span(labels).first(count));
  }
}

void MfTrainer::enqueue(const SampleRange& samples, bool training, std::span<float> labels) {
  input_.fill(samples, labels);
  engine_.enqueue(input_.batches(), training);
}

/// The activations of `samples` samples into rows_, replica after replica.
void MfTrainer::dequeue(std::int64_t samples) {
  const std::int64_t per_replica = batch_ / replicas_;
  for (std::int32_t r = 0; r < replicas_; ++r) {
    const std::int64_t first = std::min(samples, r * per_replica);
    const std::int64_t count = std::min(samples - first, per_replica);
    for (std::size_t f = 0; f < dims_.size(); ++f) {
      targets_[static_cast<std::size_t>(r) * dims_.size() + f] = {
          rows(static_cast<std::int32_t>(f), first), static_cast<std::size_t>(count * dims_[f])};
    }
  }
  engine_.dequeue(targets_);
}

MfBlock MfTrainer::block(std::int64_t index, std::int64_t samples, const float* labels) {
  const std::int64_t first = index * kBlock;
  const auto sides = static_cast<std::int64_t>(sides_.size());
  return {.samples = std::min(kBlock, samples - first),
          .dim = dims_[static_cast<std::size_t>(user_)],
          .user = rows(user_, first),
          .item = rows(item_, first),
          .sides = side_rows_.data() + index * sides,
          .num_sides = sides,
          .user_bias = rows(user_bias_, first),
          .item_bias = rows(item_bias_, first),
          .label = labels + first,
          .mean = mean_,
          .regularization = regularization_};
}

template <class Body>
void MfTrainer::for_each_block(std::int64_t samples, const Body& body) {
  const std::int64_t blocks = (samples + kBlock - 1) / kBlock;
  if (samples * dims_[static_cast<std::size_t>(user_)] < inline_floats_) {
    for (std::int64_t i = 0; i < blocks; ++i) body(i);
  } else {
    executor_->run(blocks, [&](const WorkItem& item) { body(item.index); });
  }
}

/// Puts the gradients in the place of the activations; the sum of error^2, block after block.
double MfTrainer::compute_gradients(std::int64_t samples, const float* labels) {
  for_each_block(samples, [&](std::int64_t index) {
    squares_[static_cast<std::size_t>(index)] = mf_gradients(block(index, samples, labels), level_);
  });
  double sum = 0;
  for (std::int64_t i = 0; i * kBlock < samples; ++i) sum += squares_[static_cast<std::size_t>(i)];
  return sum;
}

void MfTrainer::apply_gradients() {
  for (std::size_t r = 0; r < gradients_.size(); ++r) {
    for (std::size_t f = 0; f < dims_.size(); ++f) {
      const std::span<const float> values = targets_[r * dims_.size() + f];
      gradients_[r][static_cast<std::int64_t>(f)].values = values;
    }
  }
  engine_.apply_gradients(gradients_);
}

}  // namespace embertable::jobs
