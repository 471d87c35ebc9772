#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/executor.h"
#include "kernels/gather/gather.h"
#include "kernels/level.h"
#include "optimizer/gradient_sums.h"
#include "rows/plan.h"
#include "serving/lookup.h"
#include "step/backward.h"
#include "step/forward.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable::serving {

/// One input that was looked up, and the gradient of its activation. Borrowed.
struct EntrySource {
  const Gather<std::uint64_t>* entries = nullptr;
  const float* gradient = nullptr;  ///< [outputs, dim] packed, or null: zeros
  std::int32_t replica = 0;
};

/// Returns where the gradient of each activation of one lookup is, null for none. Copies doubles to
/// `memory`. Throws ValueError or TypeError naming replica (-1: none) and path for another
/// structure or shape.
std::vector<const float*> take_gradients(const Lookup& lookup, const Nested<Gradient>& gradients,
                                         std::int32_t replica, Arena& memory);

/// Appends the inputs of one lookup to the sources of their tables, to[table_of[feature]], in the
/// order of the features.
void append_sources(const Lookup& lookup, std::span<const float* const> gradients,
                    std::int32_t replica, std::span<const std::int64_t> table_of,
                    std::vector<std::vector<EntrySource>>& to);

/// Returns the rows of a table in order, each with its sum.
GradientSumsOfTable in_order(const GradientSums& sums, std::int32_t dim);

/// Makes the step of a BackwardRun from lookups: turns their entries into plans, as an engine's
/// readers do with ids. Memory is reused.
class RowUpdates {
 public:
  /// The executor is borrowed.
  RowUpdates(Executor& executor, SimdLevel level);

  /// Forgets all tables.
  void clear();

  /// Adds a table with its sources in canonical order: replica, feature. Returns its run, valid
  /// until the next call, in which the caller sets how rows step; if it does not, rows stay as they
  /// are and `sums` has their gradients. The name is borrowed.
  TableRun& add(std::string_view name, const RowBlock& rows, std::span<const EntrySource> sources);

  /// Does everything that may fail: reads entries and takes memory, but changes no row. Throws
  /// ValueError naming the table for more entries than an update can number.
  void prepare();

  /// Updates rows, once after `prepare`. Throws the first exception of a user's function in a rule.
  void run() { backward_.run(workers_); }

  /// Returns the number of buckets of a table's update. Requires: `prepare`.
  std::int32_t buckets(std::int64_t table) const { return step_.tables[table].buckets; }

  /// Returns the sums of gradients that reached the rows of a table. Requires: `run`.
  const GradientSums& sums(std::int64_t table) const { return backward_.sums(table); }

 private:
  /// The entries of one source, and the plan that is made from them.
  struct Reading {
    std::size_t table = 0;  ///< index into the step's tables
    LookupPlan plan;
    const std::uint64_t* row = nullptr;  ///< [plan.row.size], narrowed unless the plan is wide
  };
  struct Tile {
    const Reading* reading = nullptr;
    std::int64_t tile = 0;
  };
  const SimdLevel level_;
  Workers workers_;
  HostStep step_;
  std::deque<Reading> readings_;  ///< by table and source
  std::vector<Tile> tiles_;
  ForwardRun scatters_;
  BackwardRun backward_;
};

}  // namespace embertable::serving
