#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/level.h"
#include "step/message.h"
#include "step/scratch_pool.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Numbers distinct rows of a table from 0, in rising order. Takes 2 bits for each row of the
/// table.
class RowPlaces {
 public:
  /// Takes memory for tables of up to so many rows, so that `clear` does not.
  void reserve(std::int64_t table_rows);

  /// Forgets all rows. `table_rows`: rows of the table.
  void clear(std::int64_t table_rows);
  void add(std::uint64_t row) { bits_[row / 64] |= std::uint64_t{1} << (row % 64); }

  /// Numbers the rows that were added. Returns how many they are.
  std::int64_t number();

  /// Writes the rows in their order.
  void list(std::span<std::uint64_t> rows) const;

  /// Requires: the row was added before `number`.
  std::uint32_t operator[](std::uint64_t row) const {
    const std::uint64_t before = bits_[row / 64] & ((std::uint64_t{1} << (row % 64)) - 1);
    return before_[row / 64] + static_cast<std::uint32_t>(std::popcount(before));
  }

  std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(bits_.capacity() * sizeof(bits_[0]) +
                                     before_.capacity() * sizeof(before_[0]));
  }

 private:
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> before_;  ///< rows before those of a word
};

/// The part of a backward that only several hosts need. Each core's gradients of rows that other
/// hosts hold are summed by row, or listed by entry if a table does not accumulate, and sent to
/// them: those of a shard's rows to its host, those of a replicated table to all. The hosts plan
/// their updates from what they receive and from their own entries. Its memory is reused.
class GradientExchange {
 public:
  explicit GradientExchange(SimdLevel level) : level_(level) {}

  /// Fills every table's update plan and gradients. Collective. Requires: the rows of this
  /// training step were swapped, and its gradients are there. Throws what the exchange throws,
  /// IoError for a message of another host that does not hold what it should, and for replicated
  /// tables as check_planned_size.
  void run(HostStep& step, Messages& messages, Workers& workers);

  std::int64_t scratch_bytes() const noexcept;

 private:
  /// What one core adds to rows of one table that other hosts hold. Each such row has a place:
  /// that in the receive buffer or, for a replicated table, that among the core's own rows.
  /// Sums are made by the members in their order, the first one for replicated tables only.
  struct CoreSums {
    const TableRun* table = nullptr;
    std::int32_t me = 0;                          ///< the host that sends
    std::int32_t core = 0;                        ///< among those of all hosts
    std::int64_t places = 0;                      ///< number of places
    std::span<std::uint64_t> row;                 ///< rows by place, if the table is replicated
    std::span<GradientPiece> piece;               ///< pieces of the core's features
    std::span<UpdateEntry<std::uint32_t>> entry;  ///< entries for such rows, by place
    float* gain = nullptr;                        ///< parallel to entry, or null: all 1
    std::span<std::uint8_t> named;  ///< by place: whether it is in `index`; if it accumulates
    /// Places that the core named: rising if the table accumulates, else those of its entries by
    /// host, in their order.
    std::span<std::uint32_t> index;
    std::span<std::int64_t> run;  ///< [hosts + 1], `index` by host; unless it accumulates
    std::span<float>
        gradient;  ///< [places, dim] if the table accumulates, else [index.size(), dim]

    void number_rows(RowPlaces& place_of);
    void list_entries(const RowPlaces& place_of);
    void sum_rows(GroupScratch& scratch, SimdLevel level);
    void scale_entries();

    /// Calls visit(number of a row, its gradient) for those that a host is sent, in the order of
    /// index. The number is below numbers_of(host): that of the row among those which were asked of
    /// the host, or in the whole table if that is replicated.
    template <class Visit>
    void for_each_of(std::size_t host, Visit visit) const;
    std::pair<std::int64_t, std::int64_t> places_of(std::size_t host) const;
    std::pair<std::int64_t, std::int64_t> run_of(std::size_t host) const;
    std::int64_t named_of(std::size_t host) const;
    std::int64_t numbers_of(std::size_t host) const;
    void copy_to(std::size_t host, std::span<float> to) const;
  };

  static std::span<CoreSums> list_sums(const HostStep& step, Messages& messages);
  void make_sums(std::span<CoreSums> sums, Workers& workers);
  static std::span<MessageReader> send(std::span<const CoreSums> sums, Messages& messages,
                                       Workers& workers);

  const SimdLevel level_;
  ScratchPool scratch_;
  std::vector<RowPlaces> place_of_;  ///< by worker: places of a replicated table's rows
};

}  // namespace embertable
