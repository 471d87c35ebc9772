#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/intake/feed.h"
#include "engine/schedule/step.h"
#include "engine/setup/setup.h"
#include "step/bucket_policy.h"
#include "step/table_run.h"

namespace embertable::engine {

/// Chooses how the update of each table is cut, before the entries of a step are read. Thread-safe
/// but for `use`.
class BucketChoice {
 public:
  /// `setup` is borrowed.
  explicit BucketChoice(const Setup& setup);

  /// Takes what a build has made: one host's tables, what their last updates had, which is
  /// borrowed, and the output shape of each feature.
  void use(std::span<const StepTable> tables, std::span<const NamedShares> shares,
           std::span<const Shape> shapes) noexcept;

  /// Sets `step.cuts` by the first call that feeds a step, as if its cores stood for all. Where it
  /// feeds some of them, the others may bring as much as in the last step.
  void choose(Step& step, const Feed& feed);

 private:
  std::int64_t outputs_of(std::int64_t feature, const FeatureIds& ids) const;

  const Setup& setup_;
  std::span<const NamedShares> shares_;
  std::vector<std::int64_t> outputs_;  ///< by feature, of a core's whole batch
  std::mutex mutex_;
  std::vector<ExpectedUpdate> expected_;  ///< by table
};

}  // namespace embertable::engine
