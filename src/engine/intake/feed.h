#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "embertable/embedding.h"
#include "engine/schedule/schedule.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// The batches of one call and the cores that they feed.
struct Feed {
  std::span<const Batch> batches;  ///< one, or one for each replica
  CoreRange cores;                 ///< the cores that are fed
  std::int32_t cores_per_replica = 1;
  bool cut = false;  ///< the cores of a replica share its batch in equal parts
  bool training = true;
  std::string_view name = {};  ///< borrowed from the options of the call
  Schedule::Timeout timeout = {};
  std::vector<Batch> sized = {};  ///< owns the batches where dims had to be completed

  std::int32_t replica_of(std::int32_t core) const { return core / cores_per_replica; }
  std::int32_t first_replica() const { return replica_of(cores.first); }
  const Batch& batch_of(std::int32_t core) const {
    return batches.size() == 1 ? batches.front() : batches[replica_of(core)];
  }
  std::int64_t parts() const { return cut ? cores_per_replica : 1; }
};

/// Feeds all replicas, each with its own batch or all with one; the device of the options; or, in a
/// replica's own call, that replica. The batches and the options are borrowed. Throws ValueError
/// for an unknown mode, a device that the strategy does not have or that a replica's call gives,
/// several batches for one device, or a negative timeout.
Feed make_feed(const Setup& setup, std::span<const Batch> batches, const EnqueueOptions& options,
               std::optional<std::int32_t> replica = {});

}  // namespace embertable::engine
