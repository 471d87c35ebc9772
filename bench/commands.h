#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "bench/common_options.h"

namespace embertable::bench {

/// A subcommand of embertable-bench.
struct Command {
  CLI::App* app;
  std::vector<std::string> common;  ///< names of the options that it shares with others
  std::function<void()> run;
};

/// Adds the options for a run of standard workloads. Returns their names.
std::vector<std::string> add_options_of_workloads(CLI::App& app, CommonOptions& common);

/// Adds all subcommands. `app` and `common` must outlive the commands.
std::vector<Command> add_commands(CLI::App& app, CommonOptions& common);

}  // namespace embertable::bench
