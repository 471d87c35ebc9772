#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/intake/feed.h"
#include "engine/schedule/step.h"
#include "engine/setup/setup.h"
#include "input/feature_reader.h"

namespace embertable::engine {

/// Reads checked batches into the lookup plans of a step, core by core.
class BatchReader {
 public:
  /// `setup` is borrowed.
  explicit BatchReader(const Setup& setup);

  /// Puts the output shapes of one core in force.
  void use(std::span<const Shape> shapes) noexcept;

  /// Fills the plans of the cores that the call feeds. Thread-safe for calls that feed different
  /// cores of a step. Throws ValueError or DataError in terms of the caller's batches. Requires:
  /// shapes are in force; the step's cuts are chosen.
  void read(Step& step, const Feed& feed) const;

  /// Throws as `read` for batches that are read with these output shapes of one core, and keeps
  /// nothing.
  void check_values(const Feed& feed, std::span<const Shape> shapes) const;

 private:
  void read_uncut(const Feed& feed, std::span<const FeatureSpec> specs) const;
  void cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core) const;

  const Setup& setup_;
  std::vector<FeatureSpec> specs_;  ///< by feature, with the shapes in force
};

}  // namespace embertable::engine
