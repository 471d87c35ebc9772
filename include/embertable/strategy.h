#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "embertable/executor.h"
#include "embertable/export.h"

namespace embertable {

/// Which host owns a row: contiguous blocks, longer ones first, or row modulo hosts.
enum class Sharding : std::uint8_t { kDiv = 0, kMod = 1 };

struct StrategyOptions {
  /// Owners of one shard of every table each. In one process they are simulated on threads.
  std::int32_t hosts = 1;

  /// Queues, batches and activations per host. Replicas are numbered host by host.
  std::int32_t replicas_per_host = 1;

  Sharding sharding = Sharding::kDiv;

  /// Runs the parallel regions; shared among the hosts of this process. Unset: a pool of one thread
  /// per CPU.
  std::shared_ptr<Executor> executor;

  /// How long a call waits for other replicas or hosts before it throws StateError naming them. >
  /// 0; beyond kMaxTimeout it is that.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);

  /// Most replicas of all hosts together.
  static constexpr std::int64_t kMaxReplicas = 1 << 16;

  static constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);
};

namespace engine {
class Core;
class Tables;
}  // namespace engine

/// What the original calls the accelerator: it owns the tables that an accelerated `Embedding`
/// builds. Nothing is global; any number of strategies live side by side, each with at most one
/// built engine at a time.
class EMBERTABLE_API EngineStrategy {
 public:
  /// Throws ValueError naming the field for a count below 1 or too high, or a timeout that is not
  /// positive.
  explicit EngineStrategy(StrategyOptions options = {});
  ~EngineStrategy();
  EngineStrategy(const EngineStrategy&) = delete;
  EngineStrategy& operator=(const EngineStrategy&) = delete;

  const StrategyOptions& options() const noexcept { return options_; }
  std::int32_t replicas() const noexcept { return options_.hosts * options_.replicas_per_host; }

  /// Drops all tables; another engine may build then. Engines built before stay built, without
  /// content: their steps throw StateError. Exclusive with steps.
  void initialize();

 private:
  friend class engine::Core;
  StrategyOptions options_;
  std::shared_ptr<engine::Tables>
      tables_;  ///< of the engine that is built on this strategy, or null
};

using StrategyPtr = std::shared_ptr<EngineStrategy>;
EMBERTABLE_API StrategyPtr make_strategy(StrategyOptions options = {});

}  // namespace embertable
