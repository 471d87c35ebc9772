#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/memory.h"
#include "bench/team.h"
#include "bench/workload.h"

namespace embertable::bench {

/// What every row's row-wise slot holds before the first step.
inline constexpr float kInitialSlot = 0.01f;

/// The hyperparameters of every lane. Gradients are small enough that rows stay near their first
/// values.
inline constexpr float kLearningRate = 1e-4f;
inline constexpr float kEpsilon = 1e-8f;

/// Fills one row with its first values, uniform in [-0.05, 0.05), which depend on table and row
/// alone.
void fill_initial_row(std::int32_t table, std::int64_t row, std::span<float> out);

/// One table in plain memory: row r starts at rows + r * dim, its row-wise slot is slots[r].
/// Borrowed.
struct TableRows {
  float* rows = nullptr;
  float* slots = nullptr;
  std::uint64_t num_rows = 0;
};

/// A workload's tables with one row-wise slot each, on huge pages, filled with their first values.
class PlainTables {
 public:
  PlainTables(const Workload& workload, Team& team);

  std::int32_t dim() const noexcept { return dim_; }
  std::span<const TableRows> tables() const noexcept { return tables_; }

 private:
  std::int32_t dim_;
  std::vector<HugePages> memory_;
  std::vector<TableRows> tables_;
};

/// Bytes that the tables of one lane take.
std::size_t table_bytes(const Workload& workload);

}  // namespace embertable::bench
