#pragma once

#include <cstdint>
#include <vector>

#include "kernels/level.h"
#include "step/forward.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// The parallel region of a forward: every activation is looked up, and the entries of tables that
/// have an update plan are scattered into its buckets. Its memory is reused.
class ForwardRun {
 public:
  /// Lists the work of a step as items for `workers` workers. The step is borrowed until `run`.
  void list(const HostStep& step, std::int32_t workers);

  /// Does the listed work. Returns how many workers took part.
  std::int32_t run(Workers& workers, SimdLevel level) const;

 private:
  struct Item {
    LookupItem lookup;  ///< without a plan: the item is a scatter
    ScatterItem scatter;
    std::int64_t floats = 0;  ///< floats that it moves
  };

  void list_lookups(const TableRun& table, std::int64_t item_floats);
  void list_scatters(const TableRun& table);

  std::vector<Item> items_;  ///< lookups first
};

}  // namespace embertable
