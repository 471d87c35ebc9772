#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "bench/load.h"
#include "bench/memory.h"
#include "bench/team.h"
#include "embertable/embedding.h"
#include "kernels/level.h"

namespace embertable::bench {

/// Seconds of one pass over all batches of a load.
struct BareSeconds {
  double gather = 0;  ///< ids and rows read, activations written
  double update = 0;  ///< named rows and their slots read and written, gradients read once

  double step() const { return gather + update; }
};

/// What a load's bytes take when nothing else is to be done with them: all bytes of a step, in bare
/// loops with software prefetch, on rows and slots of its own in plain memory.
class BareStep {
 public:
  static constexpr std::size_t kDistances[] = {8, 16, 32, 64};

  /// `tables` say which slots there are. Batches and gradients are borrowed.
  BareStep(const Load& load, const std::vector<TableInfo>& tables,
           std::span<const LoadBatch> batches, std::span<const std::span<const float>> gradients,
           Team& team);

  /// Times one pass of both loops at each distance.
  void run();

  /// Of each loop the median over the runs at its best distance.
  BareSeconds median() const;

  /// Rows that a batch names, counted once in each table: of all batches.
  std::size_t named_rows() const;

 private:
  struct Table {
    std::size_t record_floats = 0;
    HugePages records;
    std::vector<HugePages> slots;
    std::vector<float*> slot;
  };

  double gather_pass(std::size_t distance);
  double update_pass(std::size_t distance);
  void name_rows(const LoadBatch& batch);

  const Load& load_;
  std::span<const LoadBatch> batches_;
  std::span<const std::span<const float>> gradients_;
  Team& team_;
  const SimdLevel level_ = simd_level();
  std::vector<Table> tables_;
  std::vector<std::vector<std::vector<std::uint32_t>>> named_;  ///< by batch, then by table
  HugePages activations_;
  std::size_t next_gradient_ = 0;
  std::vector<double> gather_[std::size(kDistances)], update_[std::size(kDistances)];
};

}  // namespace embertable::bench
