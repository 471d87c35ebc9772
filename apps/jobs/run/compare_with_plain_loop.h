#pragma once

#include <cstdint>

#include "apps/jobs/run/train.h"
#include "apps/jobs/spec/job.h"

namespace embertable::jobs {

/// Samples per second of one thread, medians over rounds.
struct Comparison {
  double engine = 0;
  double plain_loop = 0;
};

/// Trains `rounds` epochs with the job's engine and as many with a plain loop over the same
/// ratings, alternating in one process, both on the calling thread and in the same order. The time
/// excludes reading and shuffling. The loop does not support side features. Throws ValueError
/// unless rounds >= 1; what train throws.
Comparison compare_with_plain_loop(const Job& job, const TrainOptions& options,
                                   std::int32_t rounds);

}  // namespace embertable::jobs
