#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "bench/tables.h"
#include "bench/team.h"
#include "bench/workload.h"

namespace embertable::bench {

/// How fast this machine moves a workload's bytes when nothing else is to be done: seconds for one
/// pass over all batches, each the best of several prefetch distances.
struct LimitSeconds {
  double gather = 0;      ///< every row that is looked up is read
  double update = 0;      ///< every row that a batch names is read and written, once a batch
  double gather_all = 0;  ///< also: every activation is written
  double update_all = 0;  ///< also: slots are read and written, gradients read once
};

/// The rows that each batch names, in no order, table by table.
struct NamedRows {
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> first;  ///< [tables + 1], into rows
};

/// Runs the two bare loops of a step, with software prefetch, on the tables of the baseline. The
/// rows' values stay: what is added is too small to show.
class Limits {
 public:
  static constexpr int kDistances[] = {8, 16, 32, 64};

  /// Everything is borrowed. `activations` is overwritten.
  Limits(const Workload& workload, std::span<const WorkloadBatch> batches,
         std::span<const std::span<const float>> gradients, const PlainTables& tables,
         std::span<float> activations, Team& team);

  /// Times one pass of every loop at every distance.
  void run();

  /// For each loop the median over the runs at its best distance.
  LimitSeconds median() const;

 private:
  enum Loop { kGather, kUpdate, kGatherAll, kUpdateAll, kLoops };

  double gather_pass(int distance, bool all);
  double update_pass(int distance, bool all);

  std::span<const WorkloadBatch> batches_;
  std::span<const std::span<const float>> gradients_;
  const PlainTables& tables_;
  std::span<float> activations_;
  Team& team_;
  std::vector<float*> rows_;
  std::vector<float*> slots_;
  std::vector<NamedRows> named_;
  std::size_t next_gradient_ = 0;
  std::vector<double> seconds_[kLoops][std::size(kDistances)];
};

}  // namespace embertable::bench
