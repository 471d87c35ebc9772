#pragma once

#include <cstdint>
#include <vector>

#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Counts the distinct rows of this host's shards that a step names, including those that other
/// hosts ask for. Costs two passes over the entries; its memory, a bit for each row, is kept.
class UniqueRows {
 public:
  /// Calls tell(table, rows) for every table, from several threads.
  void count(const HostStep& step, Workers& workers,
             FunctionRef<void(std::int64_t table, std::int64_t rows)> tell);

 private:
  /// Has a bit for each row of the shard, by table; all clear between counts.
  std::vector<std::vector<std::uint64_t>> seen_;
};

}  // namespace embertable
