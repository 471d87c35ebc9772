#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

  /// Queues of each replica. A replica's activations and gradients are those of its cores, one
  /// after the other on axis 0; sums of gradients count cores as replicas. Unset: one, and no
  /// assignment of devices.
  std::optional<std::int32_t> cores_per_replica = {};

  Sharding sharding = Sharding::kDiv;

  /// Runs the parallel regions; shared among the hosts of this process. Unset: a pool of one thread
  /// per CPU.
  std::shared_ptr<Executor> executor;

  /// How long a call waits for other replicas, hosts or threads before it throws StateError naming
  /// them. > 0; beyond kMaxTimeout it is that.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);

  /// Names of all cores' devices, each with its task, in any order. Empty: see
  /// EngineStrategy::devices.
  std::vector<std::string> devices = {};

  /// Most replicas, and most cores, of all hosts together.
  static constexpr std::int64_t kMaxReplicas = 1 << 16;

  static constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);
};

namespace engine {
class TableStore;
class Tables;
}  // namespace engine

/// What the original calls the accelerator: it owns the tables that an accelerated `Embedding`
/// builds. Nothing is global; any number of strategies live side by side, each with at most one
/// built engine at a time.
class EMBERTABLE_API EngineStrategy {
 public:
  /// Throws ValueError naming the field for a count below 1 or too high, a timeout that is not
  /// positive, or devices that are not one accelerator for each core on as many hosts as there are.
  explicit EngineStrategy(StrategyOptions options = {});
  ~EngineStrategy();
  EngineStrategy(const EngineStrategy&) = delete;
  EngineStrategy& operator=(const EngineStrategy&) = delete;

  const StrategyOptions& options() const noexcept { return options_; }
  std::int32_t replicas() const noexcept { return options_.hosts * options_.replicas_per_host; }

  std::int32_t cores_per_replica() const noexcept { return options_.cores_per_replica.value_or(1); }
  std::int32_t cores() const noexcept { return replicas() * cores_per_replica(); }

  /// The device of each core, "/job:worker/replica:0/task:<host>/device:TPU:<core of the host>", or
  /// the caller's sorted by replica, task, index, job: core by core, replica by replica, host by
  /// host. Source: TF tpu_embedding_v2.py, _sort_device_spec_strings.
  std::vector<std::string> devices() const;

  /// The CPU of each host, "/job:worker/replica:0/task:0/device:CPU:0".
  /// Source: TF tpu_embedding_v2.py, get_list_of_hosts.
  std::vector<std::string> list_of_hosts() const;

  /// The core that a device's name means. With a task it is the name of one device; without, as in
  /// "TPU:3", devices are counted through all hosts. Throws ValueError naming the device if it is
  /// no accelerator or the strategy has none of that name.
  std::int32_t core_of(std::string_view device) const;

  /// Drops all tables; another engine may build then. Engines built before stay built, without
  /// content: their steps throw StateError. Exclusive with steps.
  void initialize();

 private:
  friend class engine::TableStore;
  StrategyOptions options_;
  std::shared_ptr<engine::Tables>
      tables_;  ///< of the engine that is built on this strategy, or null
};

using StrategyPtr = std::shared_ptr<EngineStrategy>;
EMBERTABLE_API StrategyPtr make_strategy(StrategyOptions options = {});

}  // namespace embertable
