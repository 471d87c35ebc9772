#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/level.h"
#include "kernels/once.h"
#include "step/once_numbers.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Finds the entries of rows that no other entry of their table names, whatever feature or core
/// it is of, where a step sets them apart (TableRun::once_ranges). Their rows need no grouping and
/// no sum, so they are updated range by range of rows, in the order of the output rows, whose
/// gradients are then read one after the other. Most of them are found, but not those that share a
/// slot of a filter with another row.
///
/// A table whose entries are no more than a worker's share is searched by one worker. The entries
/// of others are cut into parts, but bucket numbers are written by whole tiles. Up to
/// kMostOnceFilters parts fill an OnceFilter each, which are joined. More share OnceNumbers.
class OnceRows {
 public:
  explicit OnceRows(SimdLevel level) : level_(level) {}

  /// Sets bucket numbers and counts in the lookup plans of such tables. Runs up to three regions,
  /// none if there is no such table. Memory is that of the step. Requires: one host.
  void run(HostStep& step, Workers& workers);

 private:
  /// The entries of some output rows of one feature: one tile of its plan.
  struct Tile {
    LookupPlan* plan = nullptr;
    std::int64_t tile = 0;
    std::int64_t first = 0, count = 0;  ///< entries of the plan
    std::int64_t before = 0;            ///< entries of the features before

    template <class Index>
    NumberedRows<Index> numbered(const Index* row) const {
      return {row + first, count, before + first};
    }
  };

  /// A table that is searched.
  struct Search {
    const TableRun* table = nullptr;
    std::int64_t entries = 0;
    std::int64_t first_tile = 0, tiles = 0;
    std::int64_t parts = 1;
    int bits = 0;
    std::span<std::uint64_t> filters;  ///< a filter for each part, one after the other; or
    OnceNumbers numbers;
  };

  /// A share of the entries of a table, and a share of its tiles.
  struct Part {
    const Search* search = nullptr;
    std::int64_t part = 0;
  };

  void list(HostStep& step, std::int64_t workers);

  template <class Visit>
  void for_each_entry(const Part& part, Visit visit) const;

  void search_alone(const Search& search, std::span<std::uint64_t> filter) const noexcept;
  void see(const Part& part) const noexcept;
  void combine(const Part& part) const noexcept;
  void set_apart(const Part& part) const noexcept;

  const SimdLevel level_;
  std::vector<Search> searches_;
  std::vector<Tile> tiles_;  ///< by table, feature and tile
  std::vector<Part> parts_;  ///< parts of shared searches first
  std::int64_t shared_ = 0;  ///< parts of searches that are shared
};

}  // namespace embertable
