#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/memory.h"
#include "embertable/direct_embedding.h"
#include "engine/setup/setup.h"
#include "engine/tables.h"
#include "serving/row_updates.h"

namespace embertable::direct {

/// Lookups and their gradients, one of each for every replica. Borrowed.
using Parts = std::span<const LookupGradients>;

/// Takes the gradients of lookups to the rows that they read. Memory is reused. For one thread at a
/// time, without a step under way.
class DirectSteps {
 public:
  /// `setup` is borrowed. `owner`: the number that is noted in the lookups of this object.
  DirectSteps(const engine::Setup& setup, std::uint64_t owner);

  /// Returns the sums of gradients of every table. Throws StateError for a lookup of another
  /// object, and as serving::take_gradients.
  std::vector<GradientSumsOfTable> sum_up(const engine::Tables& tables, Parts parts);

  /// Does everything of a step that may fail before rows change. Throws as `sum_up`, and what a
  /// rate function throws. Requires: every table has an optimizer.
  void plan(const engine::Tables& tables, Parts parts, std::int64_t step);

  /// Updates the rows, once after `plan`. Throws the first exception of a user's function in a
  /// rule.
  void run() { updates_.run(); }

 private:
  using Sources = std::vector<std::vector<serving::EntrySource>>;  ///< by table

  const serving::Lookup& checked(const LookupOutput& output, std::int32_t replica) const;
  Sources collect_sources(Parts parts);

  const engine::Setup& setup_;
  const std::uint64_t owner_;
  serving::RowUpdates updates_;
  Arena memory_;  ///< memory of gradients that were doubles
};

}  // namespace embertable::direct
