#pragma once

#include <cstdint>

#include "kernels/level.h"
#include "step/scratch_pool.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Finds out which rows of other hosts a step names. Its memory is reused.
class RowRouter {
 public:
  explicit RowRouter(SimdLevel level) : level_(level) {}

  /// Makes the lookup plans of host `me` name local rows, and places in the receive buffer for the
  /// rows of others; lists in every table's route which rows are asked of whom. Of a replicated
  /// table every row is here, under its number in the table. Throws ValueError if one table has
  /// more than `most_grouped` entries; no plan has changed then.
  void run(HostStep& step, std::int32_t me, Workers& workers,
           std::int64_t most_grouped = kMostGrouped);

  std::int64_t scratch_bytes() const noexcept { return scratch_.bytes(); }

 private:
  const SimdLevel level_;
  ScratchPool scratch_;
};

}  // namespace embertable
