#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fork_guard.h"
#include "embertable/embedding.h"
#include "engine/setup/assembly.h"
#include "engine/setup/configuration.h"
#include "engine/setup/host_group.h"
#include "kernels/level.h"

namespace embertable::engine {

/// The configuration of one engine, checked and resolved. It does not change after construction.
struct Setup {
  /// Uses the strategy's executor, else `executor`, else a thread pool of its own. Throws
  /// ValueError for a broken rule of a configuration.
  Setup(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
        StrategyPtr strategy, EmbeddingOptions options, std::shared_ptr<Executor> executor);

  bool accelerated() const noexcept { return strategy != nullptr; }
  bool has_one_batch_size() const noexcept { return options.revision == ApiRevision::kBatchSize; }
  Sharding sharding() const noexcept;
  Machine machine() const;

  /// Longest time that a call waits for other threads of the caller.
  std::chrono::milliseconds timeout() const noexcept;

  const ResolvedTable& table(std::int64_t feature) const {
    return assembly.tables[assembly.table_of[feature]];
  }

  /// Sends a warning to the log of the options.
  void warn(const std::string& text) const;

  /// Throws StateError naming `call` for a plain engine.
  void require_accelerated(std::string_view call) const;

  /// Throws StateError naming `call` in a forked child of the constructing process.
  void require_same_process(std::string_view call) const;

  const Nested<FeatureConfig> features;
  const EmbeddingOptions options;
  const StrategyPtr strategy;  ///< null for plain engines
  const Assembly assembly;
  const std::int32_t all_hosts;

  // The following are those of this process, which is all hosts or one of them.
  const std::int32_t first_host;
  const std::int32_t hosts;
  const std::int32_t replicas;
  const std::int32_t cores_per_replica;
  const std::int32_t cores;  ///< replicas * cores_per_replica
  const SimdLevel level = simd_level();
  const std::shared_ptr<Executor> executor;  ///< marks threads that work for this engine
  const ForkGuard process;

  /// The processes that are the hosts; this one alone if it is all of them.
  const std::unique_ptr<HostGroup> group;
};

}  // namespace embertable::engine
