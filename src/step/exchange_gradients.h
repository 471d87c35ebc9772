#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/level.h"
#include "step/message.h"
#include "step/row_places.h"
#include "step/scratch_pool.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// The part of a backward that only several hosts need. Each core's gradients of rows that other
/// hosts hold are summed by row, or listed by entry if a table does not accumulate, and sent to
/// them: those of a shard's rows to its host, those of a replicated table to all. The hosts plan
/// their updates from what they receive and from their own entries. Its memory is reused.
class GradientExchange {
 public:
  explicit GradientExchange(SimdLevel level) : level_(level) {}

  /// Fills every table's update plan and gradients. Collective. Requires: the rows of this training
  /// step were swapped, and its gradients are there. Throws what the exchange throws, IoError for a
  /// message of another host that does not hold what it should, and for replicated tables as
  /// check_planned_size.
  void run(HostStep& step, Messages& messages, Workers& workers);

  std::int64_t scratch_bytes() const noexcept;

 private:
  struct Share;

  std::span<const Share> add_up(const HostStep& step, Messages& messages, Workers& workers);
  static std::span<MessageReader> send(std::span<const Share> shares, Messages& messages,
                                       Workers& workers);

  const SimdLevel level_;
  ScratchPool scratch_;
  std::vector<RowPlaces> place_of_;  ///< by worker: places of a replicated table's rows
};

}  // namespace embertable
