#pragma once

#include <cstdint>
#include <string>

namespace embertable::bench {

/// The size of a sharded variable of float32 rows, and how many random rows a call names.
struct ShardedBenchOptions {
  std::int64_t rows = 4'000'000;
  std::int64_t named = 1'000'000;
  int shards = 8;
  int threads = 1;
  int repetitions = 7;
};

/// Rows per second, medians over the repetitions; limits are those at their best prefetch distance.
struct ShardedBenchResult {
  ShardedBenchOptions options;
  double gather_limit = 0;        ///< rows are read
  double gather_write_limit = 0;  ///< rows are read and written in order
  double update_limit = 0;        ///< rows are read and written
  double sparse_read = 0;
  double scatter_add = 0;
  double other_load = 0;  ///< see OtherLoad
};

/// Times sparse_read and scatter_add of rows of 64, alternating with the bare loops over the same
/// rows in the same memory.
ShardedBenchResult run_sharded_bench(const ShardedBenchOptions& options);

std::string to_text(const ShardedBenchResult& result);
std::string to_json(const ShardedBenchResult& result);

}  // namespace embertable::bench
