#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/intake/batch_reader.h"
#include "engine/intake/bucket_choice.h"
#include "engine/intake/feed.h"
#include "engine/intake/known_shapes.h"
#include "engine/schedule/step.h"
#include "engine/setup/setup.h"
#include "step/table_run.h"

namespace embertable::engine {

/// Checks the batches of a call, in this order: batch size (in the batch-size revision), number,
/// structure, parts for cores, shapes, structure of weights, values. Reads them into a step.
class BatchIntake {
 public:
  /// `setup` is borrowed.
  explicit BatchIntake(const Setup& setup);

  KnownShapes& shapes() noexcept { return shapes_; }
  const KnownShapes& shapes() const noexcept { return shapes_; }

  /// Checks what needs no shapes, and completes the dims that batches leave open. Throws
  /// StateError, ValueError, TypeError; nothing is changed then.
  void check(Feed& feed, std::string_view call, bool built) const;

  /// Checks the rest of the first batches, values included, and returns the shapes that they build
  /// with: an invalid one leaves no table behind. Throws ValueError, TypeError, DataError.
  std::vector<Shape> first_shapes(const Feed& feed, std::string_view call) const;

  /// Checks the rest of later batches, all but their values. Throws ValueError, TypeError.
  void check_built(const Feed& feed) const;

  /// Puts what a build has made in force: see BucketChoice::use.
  void use(std::span<const Shape> shapes, std::span<const StepTable> tables,
           std::span<const NamedShares> shares) noexcept;

  /// Fills the plans of the cores that the call feeds with checked batches, as BatchReader::read.
  void read(Step& step, const Feed& feed);

 private:
  void check_weights(const Feed& feed) const;

  const Setup& setup_;
  KnownShapes shapes_;
  BatchReader reader_;
  BucketChoice buckets_;
};

}  // namespace embertable::engine
