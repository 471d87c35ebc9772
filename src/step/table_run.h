#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/rows.h"
#include "embertable/optimizer.h"
#include "kernels/gather/gather.h"
#include "kernels/level.h"
#include "kernels/update.h"
#include "rows/placement.h"
#include "rows/plan.h"
#include "step/bucket_policy.h"
#include "step/scratch_pool.h"
#include "step/table_update.h"
#include "step/workers.h"

namespace embertable {

/// The part of a step's lookups that is a table's or a feature's: begin <= place < end, of 0..1.
struct PartOfStep {
  double begin = 0, end = 0;

  /// Returns where elements first <= i < last of the part's `all` lie, by their middle.
  double at(std::int64_t first, std::int64_t last, std::int64_t all) const {
    const double middle = static_cast<double>(first + last) / 2;
    return begin + (end - begin) * (middle / static_cast<double>(all));
  }
};

/// One feature of one core on its way through a step.
struct FeatureRun {
  LookupPlan* plan = nullptr;
  std::int32_t core = 0;            ///< number of the core among those of all hosts
  std::int64_t index = 0;           ///< number by which the caller finds it
  float* out = nullptr;             ///< activation, [plan->outputs, dim]; null: none is wanted
  const float* gradient = nullptr;  ///< gradient of the activation, its shape; null: zeros
  PartOfStep part;                  ///< the lookups of this host that are the feature's
};

/// Rows of one table that one host needs from the others, and that they need from it. Empty with
/// one host; nothing is asked or owed of a replicated table.
struct TableRoute {
  /// By host: its local rows that this host looks up, each once.
  std::vector<std::span<std::uint64_t>> asked;
  /// By host: local rows of this host that the other host looks up.
  std::vector<std::span<const std::uint64_t>> owed;
  /// Entries that the other hosts look up in the whole table.
  std::int64_t entries_elsewhere = 0;
  /// The lookup plans name local rows and places in `received`, not rows of the whole table.
  bool translated = false;
  std::span<const std::byte> received;  ///< rows as they are stored, [sum of asked, dim], by host
  std::span<std::int64_t> received_first;  ///< [hosts + 1], rows of `received` by host
};

/// One table of one host before a step: what is the same in every step is set.
struct StepTable : TableUpdate {
  std::string_view name;
  const Placement* placement = nullptr;  ///< which host owns a row; needed with several hosts only
  bool wide = false;                     ///< row numbers of the whole table need 64 bits
  bool steps_every_row = false;          ///< rows that no entry names step too
  Grid grid;                             ///< numbers to which looked-up values are rounded

  /// Sets how rows step by what the optimizer's rule offers. Requires: `rows` is set.
  void step_by(const Optimizer& optimizer, SimdLevel level);

  /// True if every one of several hosts holds all rows.
  bool is_replicated() const noexcept { return placement != nullptr && placement->replicated(); }
};

/// One table in one step of one host: what the step is given, and the plans that its stages make.
struct TableRun : StepTable {
  std::int32_t buckets = 1;  ///< buckets of the update
  /// Ranges of the host's rows by which those that only one entry names are set apart; none: they
  /// are not.
  RowRanges once_ranges;
  bool reads_to_level2 = false;      ///< see reads_through_level2
  std::vector<FeatureRun> features;  ///< canonical order: core, feature
  TableRoute route;
  std::int64_t gradient_rows = 0;  ///< rows of the gradients that the update sums
  PartOfStep part;                 ///< from its first feature's to its last one's

  std::int64_t entries() const;
};

/// What one host keeps of a step from its lookups until its gradients have been applied. Reused.
struct HostStep {
  std::vector<TableRun> tables;
  std::int32_t cores_per_host = 1;
  bool keeps_tables = false;  ///< workers keep to tables of their own: see DealtItems
  double lookup_seconds = 0;  ///< seconds of the region of the lookups
  double floats = 0;          ///< floats that the lookups move
  Arena memory;               ///< memory of plans and routes; reset when the next step starts
};

inline std::int64_t TableRun::entries() const {
  std::int64_t entries = 0;
  for (const FeatureRun& feature : features) entries += feature.plan->row.size;
  return entries;
}

/// Sets the floats that a step's lookups move, and which part of them is each table's and each
/// feature's.
void divide_among_tables(HostStep& step);

/// Returns what a table's rows and rule say of its updates; entries, outputs, shares and whether
/// they come from one source are left as they are by default.
ExpectedUpdate expected_update(const StepTable& table);

/// Throws ValueError if the update of a table might have more entries or output rows than 32 bits
/// number, or more entries of one bucket than can be grouped. What other hosts send counts too:
/// sums of gradients, one per core and row, or without accumulation at most all their entries,
/// each of which is an output row then. Of a replicated table, only the own part is known before
/// gradients are exchanged.
void check_update_size(const TableRun& table, std::int32_t cores_per_host,
                       std::int64_t most_grouped = kMostGrouped);

/// Throws as check_update_size for every table of a step. Requires: hear_questions has run if there
/// are several hosts.
void check_update_sizes(const HostStep& step);

/// Throws as check_update_size for an update that is planned.
void check_planned_size(const TableRun& table, std::int64_t most_grouped = kMostGrouped);

/// Plans the update of every table from the counts of its lookup plans: makes room for its entries,
/// which the scatter fills, and turns counts into cursors. Throws as check_update_size.
/// Requires: one host; OnceRows has run.
void plan_updates(HostStep& step);

/// Copies the gradients of features with zero denominators, with zeros for those output rows: the
/// gradient of an activation that is zeros by rule reaches no row, be it infinite or NaN, so it is
/// not to be multiplied. Requires: the features' gradients are set, and not yet listed.
void select_zeros(HostStep& step, Workers& workers);

/// Appends the pieces of one gradient [outputs, dim] (null: zeros). Returns the end.
GradientPiece* append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                             std::int32_t core, GradientPiece* to);

/// Lists the pieces of every table's gradients in its update plan. Requires: one host.
void point_at_gradients(HostStep& step);

}  // namespace embertable
