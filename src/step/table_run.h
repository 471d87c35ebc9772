#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/rows.h"
#include "embertable/optimizer.h"
#include "kernels/gather.h"
#include "kernels/update.h"
#include "optimizer/rule.h"
#include "rows/placement.h"
#include "rows/plan.h"

namespace embertable {

/// One feature of one replica on its way through a step.
struct FeatureRun {
  LookupPlan* plan = nullptr;
  std::int32_t replica = 0;         ///< number of the replica among those of all hosts
  std::int64_t index = 0;           ///< number by which the caller finds it
  float* out = nullptr;             ///< activation, [plan->outputs, dim]; null: none is wanted
  const float* gradient = nullptr;  ///< gradient of the activation, its shape; null: zeros
};

/// Rows of one table that one host needs from the others, and that they need from it. Empty with
/// one host.
struct TableRoute {
  /// By host: its local rows that this host looks up, rising.
  std::vector<std::span<std::uint64_t>> asked;
  /// By host: local rows of this host that the other host looks up.
  std::vector<std::span<const std::uint64_t>> owed;
  std::span<float> received;               ///< [sum of asked, dim], by host
  std::span<std::int64_t> received_first;  ///< [hosts + 1], rows of `received` by host
};

/// One table in one step of one host: what the step is given, and the plans that its stages make.
/// Whatever is pointed at is borrowed until the update is done.
struct TableRun {
  std::string_view name;
  RowBlock rows;                         ///< rows of this host
  const Placement* placement = nullptr;  ///< which host owns a row; needed with several hosts only
  bool wide = false;                     ///< row numbers of the whole table need 64 bits
  Grid grid;                             ///< numbers to which looked-up values are rounded
  std::int32_t buckets = 1;              ///< buckets of the update

  const Rule* rule = nullptr;
  const Optimizer* optimizer = nullptr;
  bool accumulates = true;       ///< false: every entry is a step of its row
  bool steps_every_row = false;  ///< rows that no entry names step too
  StepScalars scalars;           ///< set once the gradients have come

  std::vector<FeatureRun> features;  ///< canonical order: replica, feature
  UpdatePlan plan;                   ///< where the entries go; empty in a lookup without gradients
  GradientSource gradients;          ///< where the pieces of plan.piece are
  TableRoute route;

  std::int64_t entries() const;
};

/// What one host keeps of a step from its lookups until its gradients have been applied. Reused.
struct HostStep {
  std::vector<TableRun> tables;
  std::int32_t replicas_per_host = 1;
  Arena memory;  ///< memory of plans and routes; reset when the next step starts
};

inline std::int64_t TableRun::entries() const {
  std::int64_t entries = 0;
  for (const FeatureRun& feature : features) entries += feature.plan->row.size;
  return entries;
}

/// Throws ValueError if the update of a table, including entries of other hosts, would have more
/// entries or output rows than 32 bits number.
void check_update_size(const TableRun& table, std::int32_t replicas_per_host);

/// Plans the update of every table from the counts of its lookup plans: makes room for its entries,
/// which the scatter fills, and turns counts into cursors. Throws as check_update_size.
/// Requires: one host.
void plan_updates(HostStep& step);

/// Appends the pieces of one gradient [outputs, dim] (null: zeros). Returns the end.
GradientPiece* append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                             std::int32_t replica, GradientPiece* to);

/// Lists the pieces of every table's gradients in its update plan. Requires: one host.
void point_at_gradients(HostStep& step);

}  // namespace embertable
