#include "engine/setup/setup.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/enumerators.h"
#include "checkpoint/manifest.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "engine/schedule/reentrancy_guard.h"
#include "engine/setup/manifest_of.h"

namespace embertable {

template <>
struct Enumerators<OutOfRange> : EnumeratorRange<OutOfRange::kError, OutOfRange::kDrop> {};
template <>
struct Enumerators<GradientPolicy>
    : EnumeratorRange<GradientPolicy::kAllow, GradientPolicy::kError> {};

}  // namespace embertable

namespace embertable::engine {
namespace {

constexpr std::int32_t kMaxQueueCapacity = 64;
constexpr std::int32_t kMaxDefaultThreads = 1024;

EmbeddingOptions checked(EmbeddingOptions options) {
  if (options.queue_capacity < 1 || options.queue_capacity > kMaxQueueCapacity) {
    throw ValueError("embedding options: queue_capacity must be 1.." +
                     std::to_string(kMaxQueueCapacity) + ", got " +
                     std::to_string(options.queue_capacity));
  }
  check_enumerator(options.out_of_range, "embedding options: out_of_range");
  check_enumerator(options.gradient_policy, "embedding options: gradient_policy");
  check_enumerator(options.revision, "embedding options: revision");
  return options;
}

std::shared_ptr<Executor> executor_of(const StrategyPtr& strategy,
                                      std::shared_ptr<Executor> given) {
  if (strategy) given = strategy->options().executor;
  if (given) return mark_workers(std::move(given));
  const auto threads = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  return mark_workers(make_thread_pool(std::clamp<std::int32_t>(threads, 1, kMaxDefaultThreads)));
}

/// Returns lines that hosts must have in common.
std::string common_configuration(const Setup& setup) {
  std::string lines = checkpoint::to_lines(manifest_of(setup, 0));
  for (const ResolvedTable& table : setup.assembly.tables)
    lines += "table '" + table.name() +
             "': replicated = " + (table.config.replicated ? "true\n" : "false\n");
  return lines;
}

/// Throws ValueError for options and features that the batch-size revision does not have.
void check_batch_size_revision(const Nested<FeatureConfig>& features,
                               const EmbeddingOptions& options, std::int32_t cores_per_replica) {
  if (options.variable_batch) {
    throw ValueError(
        "embedding options: variable_batch must be off in the batch-size revision, got true");
  }
  if (cores_per_replica > 1) {
    throw ValueError(
        "embedding options: replicas must have one core in the batch-size revision, got " +
        std::to_string(cores_per_replica));
  }
  for (std::int64_t i = 0; i < features.size(); ++i) {
    if (features[i].output_shape.has_rank()) {
      throw ValueError("feature '" + features.path(i) +
                       "': output_shape must be unset in the batch-size revision, got " +
                       features[i].output_shape.to_string());
    }
  }
}

}  // namespace

Setup::Setup(Nested<FeatureConfig> feature_config, const std::optional<Optimizer>& optimizer,
             StrategyPtr given_strategy, EmbeddingOptions given_options,
             std::shared_ptr<Executor> given_executor)
    : features(std::move(feature_config)),
      options(checked(std::move(given_options))),
      strategy(std::move(given_strategy)),
      assembly(assemble(features, optimizer, strategy != nullptr)),
      all_hosts(strategy ? strategy->options().hosts : 1),
      first_host(strategy ? strategy->first_host() : 0),
      hosts(strategy ? strategy->local_hosts() : 1),
      replicas(strategy ? strategy->local_replicas() : 1),
      cores_per_replica(strategy ? strategy->cores_per_replica() : 1),
      cores(replicas * cores_per_replica),
      executor(executor_of(strategy, std::move(given_executor))),
      group(strategy && strategy->is_one_of_several()
                ? std::make_unique<HostGroup>(strategy->options().exchange.get(),
                                              common_configuration(*this))
                : std::make_unique<HostGroup>(nullptr, std::string())) {
  if (has_one_batch_size()) check_batch_size_revision(features, options, cores_per_replica);
  checkpoint::check_configuration(manifest_of(*this, 0));
  for (const ResolvedTable& table : assembly.tables) {
    if (!table.identity->name) warn("table '" + table.name() + "' has no name of its own");
    if (table.rule && table.rule->keeps_rows_of_zeros() && table.config.initializer->is_zero()) {
      warn("table '" + table.name() + "' starts at zero, and " + table.optimizer->rule() +
           " never moves a row of zeros");
    }
  }
}

Sharding Setup::sharding() const noexcept {
  return accelerated() ? strategy->options().sharding : Sharding::kDiv;
}

Machine Setup::machine() const {
  return {.hosts = all_hosts,
          .replicas = strategy->replicas(),
          .cores_per_replica = strategy->options().cores_per_replica,
          .sharding = sharding(),
          .pipeline = options.pipeline_execution_with_tensor_core,
          .one_batch_size = has_one_batch_size()};
}

std::chrono::milliseconds Setup::timeout() const noexcept {
  return strategy ? strategy->options().timeout : std::chrono::milliseconds(1);
}

void Setup::warn(const std::string& text) const {
  if (options.log) options.log(text);
}

void Setup::require_accelerated(std::string_view call) const {
  if (!accelerated())
    throw StateError(std::string(call) + ": needs an engine with a strategy, this one is plain");
}

void Setup::require_same_process(std::string_view call) const {
  // The text is made on failure alone: a steady step allocates nothing.
  if (process.forked()) process.require_same_process(std::string(call) + ": the engine");
}

}  // namespace embertable::engine
