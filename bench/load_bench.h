#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/bare_step.h"
#include "bench/lane.h"
#include "bench/load.h"
#include "bench/workload_bench.h"
#include "embertable/embedding.h"

namespace embertable::bench {

/// What one load gave, in seconds of one pass over its batches.
struct LoadResult {
  std::size_t lookups = 0;
  std::size_t named_rows = 0;  ///< distinct in each table and batch
  StageSeconds seconds;        ///< medians, one by one
  double step = 0;
  BareSeconds bare;
  double other_load = 0;  ///< see OtherLoad

  /// How much of the rate of its own bytes a step reaches.
  double of_limit() const { return bare.step() / step; }
  double rate() const { return static_cast<double>(lookups) / step; }
};

/// One pass that is not counted, then the repetitions; after each the bare loops of the same load.
LoadResult run_load(const Load& load, int threads, int repetitions);

/// A drawn load beside its own limit, and beside the smallest such ratio among W1 to W6, which are
/// measured the same way unless it is given. Prints text for people, or one JSON object. Throws
/// std::runtime_error before anything runs where a load needs more memory than is free; W1 to W6
/// get fewer rows before they are too many.
void run_random(std::uint64_t seed, int threads, int repetitions, std::optional<double> floor,
                bool json);

/// Hot ids: a load with none, with one id that makes up 30 % of all entries, and with a single id.
/// Tables get fewer rows where memory is short. Throws as run_random does.
void run_hot(int threads, int repetitions, std::int64_t rows, bool json);

/// Where the time of a workload's steps goes, and how many bytes each stage moves for a lookup.
/// Rows that were not asked for are halved until they fit. Throws as run_random does.
void run_stages(const Workload& standard, const BenchOptions& options, bool json);

}  // namespace embertable::bench
