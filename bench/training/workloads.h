#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/loads/load.h"

namespace embertable::bench {

/// Returns the workloads that the options name, or all, with their rows, batches and row type.
/// Throws std::runtime_error if given rows do not fit into memory.
std::vector<Load> chosen_workloads(const CommonOptions& options);

/// Runs workloads and both of their limits. Prints rates in lookups per second and stages in ns per
/// lookup. If `stored` names a file of such a run, as --json printed it, compares with that.
/// steps_alone: no other bytes move between two steps, as none do between two of the bare loops.
/// Returns false if a workload became slower.
bool run_workloads(const CommonOptions& options, const std::string& stored, bool steps_alone);

/// Measures a drawn load against its own limit, and compares with the smallest such ratio among W1
/// to W6, which are measured the same way unless it is given. Throws std::runtime_error before
/// anything runs if the load needs more memory than is free; W1 to W6 get fewer rows instead.
void run_random(std::uint64_t seed, std::optional<double> floor, const CommonOptions& options);

}  // namespace embertable::bench
