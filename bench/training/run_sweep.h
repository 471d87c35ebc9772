#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace embertable::bench {

struct SweepOptions {
  std::vector<int> threads = {1, 2};  ///< each load runs with each of them
  int repetitions = 3;
  std::string factor;        ///< only this one; empty: all
  bool quick = false;        ///< smaller and fewer values of each factor
  std::int64_t rows = 0;     ///< rows of the middle load's tables; 0: the default
  std::int32_t batches = 0;  ///< batches of a pass; 0: the default
  std::string csv;           ///< a file, overwritten
  bool json = false;         ///< one JSON object per line instead of text
};

/// Names of the factors.
std::vector<std::string> sweep_factors();

/// Measures steps with one factor varied at a time around a middle load (rows, dim, ids of a
/// sample, samples, tables, skew), with each number of threads, and the limit for the same bytes. A
/// load that does not fit into the free memory has a note in the file with the bytes that it needs.
/// Throws std::runtime_error naming a file that cannot be written, std::invalid_argument if rows
/// are given although only the factor `rows` is varied.
void run_sweep(const SweepOptions& options);

}  // namespace embertable::bench
