#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/level.h"
#include "step/backward.h"
#include "step/message.h"
#include "step/table_run.h"

namespace embertable {

/// The part of a backward that only several hosts need. Each replica's gradients of rows that other
/// hosts own are summed by row, or listed by entry if a table does not accumulate, and sent to the
/// owners, who plan their updates from what they receive and from their own entries. Its memory is
/// reused.
class GradientExchange {
 public:
  explicit GradientExchange(SimdLevel level) : level_(level) {}

  /// Fills every table's update plan and gradients. Collective. Requires: fetch_remote_rows of this
  /// step, and its gradients. Throws ValueError where an update would have more output rows than 32
  /// bits number, and what the exchange throws.
  void run(HostStep& step, Messages& messages);

  std::int64_t scratch_bytes() const noexcept { return scratch_.bytes(); }

 private:
  /// The gradients of one table's received rows in one replica.
  struct ReplicaSums {
    const TableRoute* route = nullptr;
    std::int32_t dim = 0;
    bool summed = true;              ///< false: there is a gradient for every entry
    std::span<std::uint32_t> index;  ///< received rows that the replica named, rising if summed
    std::span<float> gradient;       ///< [received rows, dim] if summed, else [index.size(), dim]

    /// Calls visit(received row, its gradient) for those that a host owns, in the order of index.
    template <class Visit>
    void for_each_of(std::size_t host, Visit visit) const;
    std::int64_t named_of(std::size_t host) const;
  };

  void gather_received(const TableRun& table, std::int32_t replica);
  ReplicaSums sum_received_rows(const TableRun& table, Arena& memory);
  ReplicaSums list_received_entries(const TableRun& table, Arena& memory) const;
  static std::span<const ByteSpan> send(std::span<const ReplicaSums> sums, Messages& messages);

  const SimdLevel level_;
  GroupScratch scratch_;

  // State of the replica whose sums are being made.
  std::vector<GradientPiece> pieces_;
  std::vector<UpdateEntry<std::uint32_t>> entries_;
  std::vector<float> gains_;
};

}  // namespace embertable
