#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/exchange.h"
#include "embertable/executor.h"
#include "embertable/version.h"

namespace embertable {

/// Decides which host owns a row: kDiv gives each host a contiguous block, longer ones first; kMod
/// gives row r to host r modulo hosts.
enum class Sharding : std::uint8_t { kDiv = 0, kMod = 1 };

/// Options of an EngineStrategy.
struct StrategyOptions {
  /// Number of hosts; each owns one shard of every table that is not replicated. Without an
  /// exchange they are simulated on threads of this process. With one it must be 1 or that of the
  /// exchange, which counts.
  std::int32_t hosts = 1;

  /// Number of replicas per host; each has its own queue, batches and activations. Replicas are
  /// numbered host by host.
  std::int32_t replicas_per_host = 1;

  /// Number of cores per replica; each has its own queue. A replica's activations and gradients are
  /// those of its cores, one after the other on axis 0; sums of gradients count cores as replicas.
  /// Unset: one core, and no assignment of devices.
  std::optional<std::int32_t> cores_per_replica = {};

  /// Decides which host owns a row.
  Sharding sharding = Sharding::kDiv;

  /// Runs the parallel regions; shared among the hosts of this process. Unset: a pool of one thread
  /// per CPU.
  std::shared_ptr<Executor> executor;

  /// Time that a call waits for other threads of the caller, such as those of other replicas,
  /// before it throws StateError naming them. > 0; values beyond kMaxTimeout are lowered to it.
  /// Hosts and workers of this process are waited for without a limit.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);

  /// Names of all cores' devices, each with its task, in any order. Empty: the names that
  /// EngineStrategy::devices describes.
  std::vector<std::string> devices = {};

  /// Connects this process, which is one of the hosts, with the processes that are the others. All
  /// run the same program: they make the same strategies and engines in the same order, and the
  /// calls of an `Embedding` that say so together. Unset: this process is all hosts. An exchange
  /// serves one strategy at a time.
  std::shared_ptr<Exchange> exchange = {};

  /// Largest number of replicas, and of cores, of all hosts together.
  static constexpr std::int64_t kMaxReplicas = 1 << 16;

  /// Longest timeout.
  static constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 365);
};

namespace engine {
class HeldTables;
class TableStore;
}  // namespace engine

/// Owns the tables that an accelerated `Embedding` builds, and says on how many hosts, replicas and
/// cores. Nothing is global: any number of strategies live side by side, each with at most one
/// built engine at a time. If several threads build engines on it at once, one of them succeeds.
class EMBERTABLE_API EngineStrategy {
 public:
  /// Throws ValueError naming the field for a count below 1 or too high, hosts that are not those
  /// of the exchange, an exchange that another strategy uses, a timeout that is not positive, or
  /// devices that are not one accelerator for each core on as many hosts as there are.
  explicit EngineStrategy(StrategyOptions options = {});
  ~EngineStrategy();
  EngineStrategy(const EngineStrategy&) = delete;
  EngineStrategy& operator=(const EngineStrategy&) = delete;

  const StrategyOptions& options() const noexcept { return options_; }

  /// Returns the number of replicas of all hosts.
  std::int32_t replicas() const noexcept { return options_.hosts * options_.replicas_per_host; }

  /// True if the other hosts are processes of their own.
  bool is_one_of_several() const noexcept { return options_.exchange && options_.hosts > 1; }

  /// Returns the hosts of this process: their number, and the first one's.
  std::int32_t local_hosts() const noexcept { return options_.exchange ? 1 : options_.hosts; }
  std::int32_t first_host() const noexcept {
    return options_.exchange ? options_.exchange->host() : 0;
  }

  /// Returns the replicas of this process, whose batches, activations and gradients its calls take
  /// and give: their number, and the first one's. Calls and errors number them from 0.
  std::int32_t local_replicas() const noexcept {
    return local_hosts() * options_.replicas_per_host;
  }
  std::int32_t first_replica() const noexcept { return first_host() * options_.replicas_per_host; }

  std::int32_t cores_per_replica() const noexcept { return options_.cores_per_replica.value_or(1); }

  /// Returns the number of cores of all replicas.
  std::int32_t cores() const noexcept { return replicas() * cores_per_replica(); }

  /// Returns the device of each core, "/job:worker/replica:0/task:<host>/device:TPU:<core of the
  /// host>", or the caller's devices sorted by replica, task, index, job: core by core, replica by
  /// replica, host by host. Source: TF tpu_embedding_v2.py, _sort_device_spec_strings.
  std::vector<std::string> devices() const;

  /// Returns the CPU of each host, "/job:worker/replica:0/task:0/device:CPU:0". Source: TF
  /// tpu_embedding_v2.py, get_list_of_hosts.
  std::vector<std::string> list_of_hosts() const;

  /// Returns the core that a device's name means. A name with a task means one device; without a
  /// task, as in "TPU:3", devices are counted through all hosts. Throws ValueError naming the
  /// device if it is no accelerator or the strategy has none of that name.
  std::int32_t core_of(std::string_view device) const;

  /// Drops all tables; another engine may build then. Engines built before stay built but have no
  /// content: their steps throw StateError. Waits for a running step; exclusive with enqueue
  /// and build. Throws StateError in a function that a step calls.
  void initialize();

 private:
  friend class engine::TableStore;
  StrategyOptions options_;
  std::unique_ptr<engine::HeldTables> held_;  ///< tables of the engine that is built on it
};

using StrategyPtr = std::shared_ptr<EngineStrategy>;

/// Makes a strategy that engines can share. Throws what its constructor throws.
EMBERTABLE_API StrategyPtr make_strategy(StrategyOptions options = {});

}  // namespace embertable
