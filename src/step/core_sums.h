#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/memory.h"
#include "kernels/level.h"
#include "step/row_places.h"
#include "step/scratch_pool.h"
#include "step/table_run.h"

namespace embertable {

// What one core adds to rows of one table that other hosts hold. Each such row has a place: that in
// the receive buffer or, for a replicated table, that among the rows which the core names.

/// Memory for one core's share of one table, taken before workers fill it. It holds everything that
/// the functions below return.
struct CoreMemory {
  std::span<std::uint64_t> row;                 ///< if the table is replicated
  std::span<GradientPiece> piece;               ///< for the gradients of the core's features
  std::span<UpdateEntry<std::uint32_t>> entry;  ///< one more than the core has entries
  std::span<float> gain;                        ///< parallel to entry, or empty: all 1
  std::span<std::uint8_t> named;                ///< by place, if the table accumulates
  std::span<std::uint32_t> place;  ///< one more than places if it accumulates, else by entry
  std::span<std::int64_t> run;     ///< [hosts + 1], unless it accumulates
  std::span<float> gradient;       ///< [places or entries, dim]

  /// Throws IoError if there is no memory.
  static CoreMemory take(const TableRun& table, std::int32_t core, std::int32_t hosts,
                         Arena& memory);

  std::int64_t entries() const { return std::ssize(entry) - 1; }
};

/// Entries of a core for such rows.
struct CoreEntries {
  const TableRun* table = nullptr;
  std::int64_t places = 0;
  std::span<const std::uint64_t> row;           ///< rows by place, if the table is replicated
  std::span<const GradientPiece> piece;         ///< their gradients
  std::span<UpdateEntry<std::uint32_t>> entry;  ///< by place
  float* gain = nullptr;                        ///< parallel to entry, or null: all 1
};

/// Lists a core's entries. `place_of` is scratch, for replicated tables only.
CoreEntries list_entries(const TableRun& table, std::int32_t core, const CoreMemory& memory,
                         RowPlaces& place_of);

/// Their gradients, summed by row.
struct CoreSums {
  std::span<const std::uint32_t> place;  ///< places that an entry names, rising
  const float* gradient = nullptr;       ///< [places, dim]; unspecified where no entry names one
};

/// Sums with the arithmetic of any update.
CoreSums sum_rows(const CoreEntries& entries, const CoreMemory& memory, GroupScratch& scratch,
                  SimdLevel level);

/// Their gradients one by one, for a table without accumulation: those for each host side by side.
/// All of a replicated table are for every other host, and count as host 0's.
struct CoreList {
  std::span<const std::int64_t> run;     ///< [hosts + 1], entries by host
  std::span<const std::uint32_t> place;  ///< by entry
  const float* gradient = nullptr;       ///< [place.size(), dim]
};
CoreList list_gradients(const CoreEntries& entries, const CoreMemory& memory);

/// The part of either that one host is sent.
struct CorePart {
  const TableRun* table = nullptr;
  std::int64_t numbers = 0;              ///< each number() is below
  std::span<const std::uint64_t> row;    ///< rows by place, if the table is replicated
  std::span<const std::uint32_t> place;  ///< one for each gradient
  std::int64_t first = 0;                ///< place that the host's rows begin at
  const float* gradient = nullptr;       ///< the gradients, [named(), dim]; null: they are by place
  const float* by_place = nullptr;       ///< the gradients of all places, if `gradient` is null

  std::int64_t named() const { return std::ssize(place); }

  /// Returns the row's number among those which were asked of the host, or in the whole table if
  /// that is replicated.
  std::int64_t number(std::int64_t i) const {
    return table->is_replicated() ? static_cast<std::int64_t>(row[place[i]]) : place[i] - first;
  }

  /// Copies the gradients. [named(), dim]
  void copy_to(std::span<float> to) const;
};
CorePart part_for(std::size_t host, std::int32_t me, const CoreEntries& entries,
                  const CoreSums& sums);
CorePart part_for(std::size_t host, std::int32_t me, const CoreEntries& entries,
                  const CoreList& list);

}  // namespace embertable
