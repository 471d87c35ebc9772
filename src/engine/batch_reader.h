#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "engine/schedule/schedule.h"
#include "engine/schedule/step.h"
#include "engine/setup.h"
#include "engine/tables.h"
#include "input/feature_reader.h"
#include "step/bucket_policy.h"

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

/// Turns the batches of a call into the lookup plans of a step, core by core. Thread-safe for calls
/// that feed different cores of a step.
class BatchReader {
 public:
  explicit BatchReader(const Setup& setup);

  /// Reads for these tables from now on. `shares`: by table. Both are borrowed.
  void use(const Tables& tables, std::span<const NamedShares> shares) noexcept;

  /// Fills the plans of the cores that the call feeds. `specs` hold the output shapes of one core,
  /// fully defined. Throws ValueError or DataError in terms of the caller's batches.
  void read(Step& step, const Feed& feed, std::span<const FeatureSpec> specs);

  /// Reads each batch of a call uncut into temporary memory, to find what is wrong with it.
  void check(const Feed& feed, std::span<const FeatureSpec> specs) const;

 private:
  void check_batch(const Feed& feed, const Batch& batch, std::int32_t replica,
                   std::span<const FeatureSpec> specs) const;
  void choose_buckets(Step& step, const Feed& feed, const Batch& batch,
                      std::span<const FeatureSpec> specs);
  void cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core,
                     std::span<const FeatureSpec> specs);

  const Setup& setup_;
  std::span<const NamedShares> shares_;
  std::mutex choosing_buckets_;
  std::vector<ExpectedUpdate> expected_;  ///< by table
};

}  // namespace embertable::engine
