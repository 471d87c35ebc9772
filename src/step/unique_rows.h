#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// Counts the distinct rows of a host's shards that a step names, including those that other hosts
/// ask for. Rows of a replicated table count once for all hosts of this process. Costs two passes
/// over the entries; its memory, a bit for each row, is kept.
class UniqueRows {
 public:
  /// Calls tell(table, rows) for every table, from several threads. `hosts`: the step of each host
  /// of this process, of which `mine` is counted; the first has the rows of replicated tables.
  void count(std::span<const HostStep> hosts, std::size_t mine, Workers& workers,
             FunctionRef<void(std::int64_t table, std::int64_t rows)> tell);

  std::int64_t bytes() const noexcept;

 private:
  /// Has a bit for each row of the shard, by table; all clear between counts.
  std::vector<std::vector<std::uint64_t>> seen_;
};

}  // namespace embertable
