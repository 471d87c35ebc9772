#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "engine/schedule/schedule.h"
#include "engine/setup.h"

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
  const Batch& batch_of(std::int32_t core) const {
    return batches.size() == 1 ? batches.front() : batches[replica_of(core)];
  }
  std::int64_t parts() const { return cut ? cores_per_replica : 1; }
};

/// Feeds all replicas, each with its own batch or all with one.
Feed feed_all(const Setup& setup, std::span<const Batch> batches, bool training);

/// Feeds all replicas or the device of the options. Throws ValueError for a device that the
/// strategy does not have, several batches for one device, or a negative timeout; DataError for an
/// unknown mode.
Feed feed_by_options(const Setup& setup, std::span<const Batch> batches,
                     const EnqueueOptions& options);

/// Feeds one replica. Throws as above, and ValueError for a device.
Feed feed_replica(const Setup& setup, std::int32_t replica, const Batch& batch,
                  const EnqueueOptions& options);

}  // namespace embertable::engine
