#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/intake/feed.h"
#include "engine/setup/setup.h"

namespace embertable::engine {

/// The output shapes of one core, without the dim: those of the configuration and, after the build,
/// those in force. Holds what batches ask for against them.
class KnownShapes {
 public:
  /// `setup` is borrowed.
  explicit KnownShapes(const Setup& setup);

  /// Whether batches may trigger the build and have their shapes checked.
  bool verifies() const noexcept { return verifies_; }
  void set_verifies(bool verify) noexcept { verifies_ = verify; }

  /// Shapes by feature; unknown rank before they are known.
  const Nested<Shape>& by_feature() const noexcept { return shapes_; }

  /// The shapes that a build with these incoming ones (empty: none) puts in force. Throws
  /// ValueError naming the feature's path if they contradict the configured ones or stay unknown.
  std::vector<Shape> resolve(std::span<const Shape> incoming) const;

  /// The same for the shapes that the first batches ask for: one for all replicas, or the largest
  /// if batches may vary. Also throws if replicas ask for different ones, or if batches are not to
  /// build.
  std::vector<Shape> resolve(const Feed& feed, std::string_view call) const;

  /// Puts shapes in force.
  void use(std::span<const Shape> shapes) noexcept;

  /// Completes the dims that the batches of a call leave open, in the batch-size revision. Throws
  /// as with_batch_size.
  void complete(Feed& feed, std::string_view call, bool built) const;

  /// Throws ValueError naming the feature's path where batches ask for other shapes than those in
  /// force.
  void check(const Feed& feed) const;

 private:
  Shape asked_for(const Feed& feed, const Batch& batch, std::int64_t feature) const;
  Shape asked_for_by_all(const Feed& feed, std::int64_t feature) const;
  void check_shapes_of_cores(std::span<const Shape> shapes) const;

  const Setup& setup_;
  std::atomic<bool> verifies_ = true;
  Nested<Shape> shapes_;
};

}  // namespace embertable::engine
