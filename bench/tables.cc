#include "bench/tables.h"

#include <algorithm>
#include <atomic>

#include "bench/random.h"

namespace embertable::bench {

void fill_initial_row(std::int32_t table, std::int64_t row, std::span<float> out) {
  Random random((static_cast<std::uint64_t>(table) << 40) + static_cast<std::uint64_t>(row));
  for (float& value : out) {
    value = static_cast<float>((static_cast<double>(random.next() >> 40) * 0x1p-24 - 0.5) * 0.1);
  }
}

PlainTables::PlainTables(const Workload& workload, Team& team) : dim_(workload.dim) {
  const auto rows = static_cast<std::size_t>(workload.rows);
  const auto dim = static_cast<std::size_t>(dim_);
  for (std::int32_t t = 0; t < workload.tables; ++t) {
    TableRows table{.num_rows = rows};
    table.rows = memory_.emplace_back(rows * dim * sizeof(float)).as<float>();
    table.slots = memory_.emplace_back(rows * sizeof(float)).as<float>();
    tables_.push_back(table);
  }
  constexpr std::size_t kBlockRows = 8192;
  const std::size_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  std::atomic<std::size_t> next{0};
  team.run([&](int) {
    for (std::size_t k = 0; (k = next.fetch_add(1)) < blocks * tables_.size();) {
      const TableRows& table = tables_[k / blocks];
      const std::size_t first = k % blocks * kBlockRows;
      const std::size_t last = std::min(rows, first + kBlockRows);
      for (std::size_t r = first; r < last; ++r) {
        fill_initial_row(static_cast<std::int32_t>(k / blocks), static_cast<std::int64_t>(r),
                         {table.rows + r * dim, dim});
      }
      std::fill(table.slots + first, table.slots + last, kInitialSlot);
    }
  });
}

std::size_t table_bytes(const Workload& workload) {
  return static_cast<std::size_t>(workload.tables) * static_cast<std::size_t>(workload.rows) *
         (static_cast<std::size_t>(workload.dim) + 1) * sizeof(float);
}

}  // namespace embertable::bench
