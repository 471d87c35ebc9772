#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/workload_bench.h"

namespace embertable::bench {

/// What every subcommand understands, before its name or after.
struct CommonOptions {
  std::vector<std::string> workloads;  ///< in this order
  int threads = 1;
  std::optional<int> repetitions;  ///< unset: as many as the measurement takes by itself
  bool json = false;
  std::int64_t rows = 0;     ///< see BenchOptions, as the next
  std::int32_t batches = 0;  ///< of a pass

  BenchOptions of_workloads() const {
    BenchOptions options;
    return {threads, repetitions.value_or(options.repetitions), rows, batches};
  }
};

/// A subcommand of embertable-bench and what it does.
struct Command {
  CLI::App* app;
  std::function<void(const CommonOptions&)> run;
};

/// Adds all subcommands. `app` outlives what is returned.
std::vector<Command> add_commands(CLI::App& app);

}  // namespace embertable::bench
