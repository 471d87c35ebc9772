#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/loads/load_data.h"
#include "embertable/embedding.h"

namespace embertable::bench {

/// Time that one step, or one pass of steps, took.
struct StageSeconds {
  double enqueue = 0;   ///< checking and copying the caller's ids
  double forward = 0;   ///< writing activations to the caller's memory
  double backward = 0;  ///< applying gradients to the rows

  double step() const { return enqueue + forward + backward; }
  StageSeconds& operator+=(const StageSeconds& other) {
    enqueue += other.enqueue;
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

/// One engine that trains on a load through the public interface, with threads of its own.
class Lane {
 public:
  virtual ~Lane() = default;

  /// Trains on data.batches[batch] with data.gradients[gradient]. Wakes the threads before it
  /// starts the clock, as if the step followed another one.
  virtual StageSeconds step(std::size_t batch, std::size_t gradient) = 0;

  virtual std::vector<TableInfo> tables() const = 0;

  /// Returns the digest of all tables.
  virtual std::string digest() const = 0;

  virtual Executor& executor() = 0;
};

/// Makes an engine on a load; `data` is borrowed. `optimizer` replaces the rules of all tables.
std::unique_ptr<Lane> make_lane(const LoadData& data, int threads,
                                const std::optional<Optimizer>& optimizer = {});

/// Makes an engine whose tables are divided among hosts, each with an equal share of the load's
/// replicas and one thread. With an exchange this process is one of the hosts, all of which make
/// the lane, and call `step` and `digest`, together; without one, all of them are threads of this
/// process. Requires: `hosts` divides the load's replicas, and is that of the exchange.
std::unique_ptr<Lane> make_lane_of_hosts(const LoadData& data, std::int32_t hosts,
                                         std::shared_ptr<Exchange> exchange = {});

}  // namespace embertable::bench
