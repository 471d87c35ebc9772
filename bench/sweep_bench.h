#pragma once

#include <string>

namespace embertable::bench {

struct SweepOptions {
  int repetitions = 3;
  std::string factor;  ///< only this one; empty: all
  bool quick = false;  ///< smaller and fewer values of each factor
  std::string csv;     ///< a file, overwritten
  std::string svg;     ///< another, likewise; empty: none
};

/// Steps with one factor varied at a time around a middle load (rows, dim, ids of a sample,
/// samples, tables, skew), with one thread and with two: rates beside the limit of the same bytes.
/// What does not fit into the free memory stands in the file with the bytes that it asks for.
/// Throws std::runtime_error naming a file that cannot be written, std::invalid_argument naming the
/// factors where the one that is asked for is none of them.
void run_sweep(const SweepOptions& options);

}  // namespace embertable::bench
