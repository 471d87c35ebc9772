#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "embertable/batch.h"
#include "embertable/executor.h"
#include "kernels/gather.h"
#include "kernels/level.h"
#include "optimizer/gradient_sums.h"
#include "rows/plan.h"
#include "serving/lookup.h"
#include "step/backward.h"

namespace embertable::serving {

/// One input that was looked up, and the gradient that goes back through it. Borrowed.
struct EntrySource {
  const Gather<std::uint64_t>* entries = nullptr;
  const float* gradient = nullptr;  ///< [outputs, dim] packed, or null: zeros
  std::int32_t replica = 0;
};

/// The gradients of the activations of one lookup: where each is, null for none. Doubles are copied
/// to `memory`. Throws ValueError or TypeError naming replica (-1: none) and path for another
/// structure or shape.
std::vector<const float*> take_gradients(const Lookup& lookup, const Nested<Gradient>& gradients,
                                         std::int32_t replica, Arena& memory);

/// Sorts the inputs of one lookup into their tables, to[table_of[feature]], in the order of the
/// features.
void append_sources(const Lookup& lookup, std::span<const float* const> gradients,
                    std::int32_t replica, std::span<const std::int64_t> table_of,
                    std::vector<std::vector<EntrySource>>& to);

/// The rows of a table in their order, each with what reached it.
GradientSumsOfTable in_order(const GradientSums& sums, std::int32_t dim);

/// Updates of the rows that lookups named, for all tables at once: entries are scattered into
/// buckets by row, each row's gradients summed in canonical order, and a rule applied. Memory is
/// reused.
class RowUpdates {
 public:
  /// The executor is borrowed.
  RowUpdates(Executor& executor, SimdLevel level);
  ~RowUpdates();

  /// Forgets all tables.
  void clear();

  /// One more table with its sources in canonical order: replica, feature. The caller sets how its
  /// rows step. every_row: those that no entry names too. Throws ValueError naming the table for
  /// more entries than an update can number.
  TableUpdate& add(const std::string& table, const RowBlock& rows, std::vector<EntrySource> sources,
                   bool every_row = false);

  /// One more table, whose rows stay as they are: their gradients go to `sums`.
  void add(const std::string& table, const RowBlock& rows, std::vector<EntrySource> sources,
           GradientSums& sums);

  /// Whatever may fail: reads entries, takes memory, changes no row.
  void prepare();

  /// Once after `prepare`.
  void run();

 private:
  struct Table;
  struct Item;
  std::int32_t buckets_of(const Table& table) const;
  void read_tile(Table& table, std::size_t source, std::int64_t tile);
  void place_entries(Table& table);
  void reserve_scratch();
  void list_other_rows();
  void region(std::int64_t items, std::int64_t floats, FunctionRef<void(const WorkItem&)> body);

  Executor& executor_;
  const SimdLevel level_;
  Arena memory_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<Item> tiles_, buckets_, runs_;
  std::vector<GroupScratch> scratch_;  ///< by worker
};

}  // namespace embertable::serving
