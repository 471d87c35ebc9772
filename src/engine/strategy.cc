#include "embertable/strategy.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>

#include "base/enumerators.h"
#include "config/enumerations.h"
#include "embertable/errors.h"
#include "engine/device_name.h"
#include "engine/held_tables.h"

namespace embertable {
namespace {

using engine::DeviceName;

constexpr const char* kJob = "worker";

void at_least_one(const char* field, std::int64_t value) {
  if (value < 1)
    throw ValueError(std::string("strategy: ") + field + " must be >= 1, got " +
                     std::to_string(value));
}

void check_counts(const StrategyOptions& options) {
  at_least_one("hosts", options.hosts);
  at_least_one("replicas_per_host", options.replicas_per_host);
  at_least_one("cores_per_replica", options.cores_per_replica.value_or(1));
  const std::int64_t replicas = std::int64_t{options.hosts} * options.replicas_per_host;
  if (replicas > StrategyOptions::kMaxReplicas) {
    throw ValueError("strategy: hosts * replicas_per_host must be <= " +
                     std::to_string(StrategyOptions::kMaxReplicas) + ", got " +
                     std::to_string(options.hosts) + " * " +
                     std::to_string(options.replicas_per_host));
  }
  const std::int64_t cores = replicas * options.cores_per_replica.value_or(1);
  if (cores > StrategyOptions::kMaxReplicas) {
    throw ValueError("strategy: replicas * cores_per_replica must be <= " +
                     std::to_string(StrategyOptions::kMaxReplicas) + ", got " +
                     std::to_string(replicas) + " * " + std::to_string(*options.cores_per_replica));
  }
}

DeviceName parse_device(const std::string& text) {
  DeviceName name = DeviceName::parse(text);
  if (!name.is_accelerator() || !name.task || !name.index) {
    throw ValueError(
        "strategy: devices must be accelerators with task and index, as in "
        "'/job:worker/replica:0/task:0/device:TPU:0', got '" +
        text + "'");
  }
  if (!name.job) name.job = kJob;
  if (!name.replica) name.replica = 0;
  return name;
}

/// Returns the host of a device, as the name of its CPU.
std::string host_of(DeviceName device) {
  device.type = "CPU";
  device.index = 0;
  return device.to_string();
}

/// Sorts the devices, so that those of each host are adjacent.
void check_devices(StrategyOptions& options) {
  if (options.devices.empty()) return;
  std::vector<DeviceName> names;
  for (const std::string& text : options.devices) names.push_back(parse_device(text));
  std::stable_sort(names.begin(), names.end());
  const std::int64_t per_host =
      std::int64_t{options.replicas_per_host} * options.cores_per_replica.value_or(1);
  if (static_cast<std::int64_t>(names.size()) != per_host * options.hosts) {
    throw ValueError("strategy: devices must be one for each of " +
                     std::to_string(per_host * options.hosts) + " cores, got " +
                     std::to_string(names.size()));
  }
  for (std::int64_t i = 0; i < std::ssize(names); ++i) {
    options.devices[i] = names[i].to_string();
    if (i > 0 && options.devices[i] == options.devices[i - 1])
      throw ValueError("strategy: a device must be named once, got '" + options.devices[i] +
                       "' twice");
    const std::int64_t first = i - i % per_host;
    const bool same_as_before = i > 0 && host_of(names[i]) == host_of(names[i - 1]);
    if (same_as_before != (i != first)) {
      throw ValueError("strategy: devices must be on " + std::to_string(options.hosts) +
                       " hosts, " + std::to_string(per_host) + " on each, got '" +
                       options.devices[i] + "' as device " + std::to_string(i));
    }
  }
}

/// Sets the number of hosts to that of the exchange.
void check_exchange(StrategyOptions& options) {
  if (!options.exchange) return;
  const std::int32_t hosts = options.exchange->hosts();
  if (options.hosts != 1 && options.hosts != hosts) {
    throw ValueError("strategy: hosts must be 1 or the " + std::to_string(hosts) +
                     " of the exchange, got " + std::to_string(options.hosts));
  }
  options.hosts = hosts;
}

StrategyOptions checked(StrategyOptions options) {
  check_exchange(options);
  check_counts(options);
  check_enumerator(options.sharding, "strategy: sharding");
  at_least_one("timeout in milliseconds", options.timeout.count());
  if (options.executor) at_least_one("workers of the executor", options.executor->workers());
  options.timeout = std::min(options.timeout, StrategyOptions::kMaxTimeout);
  check_devices(options);
  return options;
}

/// The exchanges of all strategies of the process: two engines would take each other's messages.
class ExchangesInUse {
 public:
  void take(const Exchange& exchange) {
    const std::lock_guard lock(mutex_);
    if (!used_.insert(&exchange).second)
      throw ValueError("strategy: the exchange is in use by another strategy");
  }
  void release(const Exchange& exchange) noexcept {
    const std::lock_guard lock(mutex_);
    used_.erase(&exchange);
  }

 private:
  std::mutex mutex_;
  std::set<const Exchange*> used_;
};

ExchangesInUse& exchanges_in_use() {
  static auto* const all = new ExchangesInUse();  // strategies may outlive static objects
  return *all;
}

DeviceName default_device(std::int32_t task, std::int32_t index) {
  return {kJob, 0, task, "TPU", index};
}

std::optional<std::int32_t> core_named(const StrategyOptions& options, const DeviceName& name) {
  const std::int32_t per_host = options.replicas_per_host * options.cores_per_replica.value_or(1);
  if (options.devices.empty()) {
    const bool known = name.job.value_or(kJob) == kJob && name.replica.value_or(0) == 0 &&
                       *name.task < options.hosts && *name.index < per_host;
    return known ? std::optional(*name.task * per_host + *name.index) : std::nullopt;
  }
  for (std::size_t core = 0; core < options.devices.size(); ++core) {
    const DeviceName mine = DeviceName::parse(options.devices[core]);
    if (mine.task == name.task && mine.index == name.index &&
        mine.job == (name.job ? name.job : mine.job) && mine.replica == name.replica.value_or(0))
      return static_cast<std::int32_t>(core);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view device, const std::string& rule) {
  throw ValueError("device must be " + rule + ", got '" + std::string(device) + "'");
}

}  // namespace

EngineStrategy::EngineStrategy(StrategyOptions options)
    : options_(checked(std::move(options))), held_(std::make_unique<engine::HeldTables>()) {
  if (options_.exchange) exchanges_in_use().take(*options_.exchange);
}
EngineStrategy::~EngineStrategy() {
  if (options_.exchange) exchanges_in_use().release(*options_.exchange);
}

void EngineStrategy::initialize() { held_->drop(); }

std::vector<std::string> EngineStrategy::devices() const {
  if (!options_.devices.empty()) return options_.devices;
  std::vector<std::string> names;
  for (std::int32_t host = 0; host < options_.hosts; ++host)
    for (std::int32_t core = 0; core < cores() / options_.hosts; ++core)
      names.push_back(default_device(host, core).to_string());
  return names;
}

std::vector<std::string> EngineStrategy::list_of_hosts() const {
  const std::vector<std::string> names = devices();
  std::vector<std::string> hosts;
  for (std::int64_t i = 0; i < std::ssize(names); i += std::ssize(names) / options_.hosts)
    hosts.push_back(host_of(DeviceName::parse(names[i])));
  return hosts;
}

std::int32_t EngineStrategy::core_of(std::string_view device) const {
  const DeviceName name = DeviceName::parse(device);
  if (!name.is_accelerator()) refuse(device, "an accelerator, as in 'TPU:0'");
  if (!name.index) refuse(device, "one accelerator, as in 'TPU:0'");
  if (!name.task) {
    if (*name.index < cores()) return *name.index;
    refuse(device, "one of the strategy's " + std::to_string(cores()) +
                       ", TPU:0 to TPU:" + std::to_string(cores() - 1));
  }
  if (const std::optional<std::int32_t> core = core_named(options_, name)) return *core;
  refuse(device, "one of the strategy's, such as '" + devices().back() + "'");
}

StrategyPtr make_strategy(StrategyOptions options) {
  return std::make_shared<EngineStrategy>(std::move(options));
}

}  // namespace embertable
