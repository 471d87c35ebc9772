#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/batch.h"
#include "engine/schedule/schedule.h"
#include "engine/schedule/step.h"
#include "engine/setup.h"
#include "engine/table_store.h"
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

/// Checks the batches of a call and reads them into the lookup plans of a step, core by core. Knows
/// the output shapes: those of the configuration and, after the build, those in force.
class BatchIntake {
 public:
  explicit BatchIntake(const Setup& setup);

  /// Whether batches may trigger the build and have their shapes checked.
  bool verifies_shapes() const noexcept { return verifies_shapes_; }
  void set_verifies_shapes(bool verify) noexcept { verifies_shapes_ = verify; }

  /// Output shapes of one core, without the dim; unknown rank before they are known.
  const Nested<Shape>& shapes() const noexcept { return shapes_; }

  /// The shapes that a build with these incoming ones (empty: none) puts in force. Throws
  /// ValueError naming the feature's path if they contradict the configured ones or stay unknown.
  std::vector<Shape> resolve(std::span<const Shape> incoming) const;

  /// Puts shapes in force for batches that are read for these tables. `shares`, which are by table,
  /// are borrowed.
  void use(std::span<const Shape> shapes, const Tables& tables,
           std::span<const NamedShares> shares) noexcept;

  /// Feeds all replicas, each with its own batch or all with one; the device of the options; or, in
  /// a replica's own call, that replica. The batches and the options are borrowed. Throws
  /// ValueError for a device that the strategy does not have or that a replica's call gives,
  /// several batches for one device, or a negative timeout; DataError for an unknown mode.
  Feed feed(std::span<const Batch> batches, const EnqueueOptions& options,
            std::optional<std::int32_t> replica = {}) const;

  /// Checks everything about the batches but their values, in this order: batch size (in the
  /// batch-size revision), number, structure, parts for cores, shapes, structure of weights. The
  /// first valid batches are checked completely and then trigger the build. Changes nothing but
  /// `feed.batches`, which have all dims known afterwards. Throws StateError, ValueError,
  /// TypeError, DataError.
  void check(Feed& feed, std::string_view call, const TableStore& store,
             FunctionRef<void(std::span<const Shape>)> build) const;

  /// Fills the plans of the cores that the call feeds with checked batches. Thread-safe for calls
  /// that feed different cores of a step. Throws ValueError or DataError in terms of the caller's
  /// batches.
  void read(Step& step, const Feed& feed);

 private:
  void check_cuts(const Feed& feed) const;
  std::optional<std::int64_t> size_since_build(const TableStore& store) const;
  std::vector<Shape> first_shapes(const Feed& feed, std::string_view call) const;
  std::vector<Shape> detect_shapes(const Feed& feed, std::string_view call) const;
  Shape detected_shape(const Feed& feed, const Batch& batch, std::int64_t feature) const;
  void check_weights_structure(const Batch& batch) const;
  void check_shapes_of_cores(std::span<const Shape> shapes) const;
  void check_values(const Feed& feed, std::span<const FeatureSpec> specs) const;
  void choose_buckets(Step& step, const Feed& feed);
  void cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core);

  const Setup& setup_;
  std::atomic<bool> verifies_shapes_ = true;
  Nested<Shape> shapes_;
  std::vector<FeatureSpec> specs_;  ///< by feature, with the shapes in force
  std::span<const NamedShares> shares_;
  std::mutex choosing_buckets_;
  std::vector<ExpectedUpdate> expected_;  ///< by table
};

}  // namespace embertable::engine
