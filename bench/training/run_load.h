#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/limits/limits.h"
#include "bench/loads/load.h"
#include "bench/training/timed_lane.h"

namespace embertable::bench {

struct BenchOptions {
  int threads = 1;
  int repetitions = 5;
  std::int64_t rows = 0;     ///< per table; 0: the load's own, halved until it fits in memory
  std::int32_t batches = 0;  ///< batches of a pass; 0: the load's own
  RowType row_type = RowType::kFloat32;  ///< storage of the rows, in the bare loops too
};

/// Results of one load, in seconds of one pass over its batches.
struct LoadResult {
  std::size_t lookups = 0;
  LaneSeconds seconds;
  LimitSeconds limits;
  double other_load = 0;  ///< see OtherLoad, over the repetitions

  /// Returns lookups per second.
  double rate() const { return static_cast<double>(lookups) / seconds.step; }

  /// Returns lookups per second of the bare loops over all bytes.
  double limit_rate() const { return static_cast<double>(lookups) / limits.step_all(); }

  /// Returns the rate of a step as a share of the limit for its own bytes.
  double of_limit() const { return limits.step_all() / seconds.step; }
};

/// What happens between two steps.
enum class Between : std::uint8_t {
  kNothing,
  kOtherWork,  ///< another batch's bytes move through the caches, as those of a model would
};

/// Runs one pass that is not counted, then the repetitions, and after each of them the bare loops
/// of the same load: those over all bytes and, if `rows_alone`, those over the rows.
LoadResult run_load(const Load& load, int threads, int repetitions, Between between,
                    bool rows_alone);

/// Measures a drawn load against its own limit, and compares with the smallest such ratio among W1
/// to W6, which are measured the same way unless it is given. Prints text for people, or one JSON
/// object. Throws std::runtime_error before anything runs if a load needs more memory than is free;
/// W1 to W6 get fewer rows before they are too large.
void run_random(std::uint64_t seed, int threads, int repetitions, std::optional<double> floor,
                bool json);

/// Measures loads with no hot id, with one id that makes up 30 % of all entries, and with a single
/// id. Tables get fewer rows if memory is short. Throws as run_random does.
void run_hot(int threads, int repetitions, std::int64_t rows, bool json);

/// Prints the time of steps of few lookups, of rows in a cache and not, and the share of it that is
/// paid once whatever a step looks up. options.rows: of the tables that no cache holds.
void run_small(const BenchOptions& options, bool json);

/// Prints the times of the stages of a standard load's steps, and how many bytes each stage moves
/// for a lookup. Default rows are halved until they fit. Throws as run_random does.
void run_stages(const Load& standard, const BenchOptions& options, bool json);

}  // namespace embertable::bench
