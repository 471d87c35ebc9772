// embertable-bench measures the standard workloads against the limits of the machine.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/training/workloads.h"

namespace embertable::bench {
namespace {

/// The options of a run without a subcommand.
struct WithoutCommand {
  std::string stored;
  bool steps_alone = false;
  std::optional<std::uint64_t> random;
  std::optional<double> floor;
};

/// Adds the options of a run without a subcommand, which sets `status`.
Command add_workloads(CLI::App& app, WithoutCommand& values, CommonOptions& common, int& status) {
  Command command = CommonAdder(app, common).all_of_workloads().runs([&] {
    if (values.random)
      run_random(*values.random, values.floor, common);
    else
      status = run_workloads(common, values.stored, values.steps_alone) ? 0 : 1;
  });
  app.add_option("--compare", values.stored,
                 "A run as --json printed it: says whose ratios to the limits moved by more than "
                 "10 %; exit status 1 where one fell")
      ->check(CLI::ExistingFile);
  app.add_flag(
      "--steps-alone", values.steps_alone,
      "Steps follow one another, as bare loops do; otherwise bare loops over all bytes take "
      "turns with steps, which find the caches as a model's other work leaves them");
  CLI::Option* random =
      app.add_option("--random", values.random,
                     "Instead: a load of mixed tables and features that this seed decides");
  for (const char* other :
       {"--workload", "--rows", "--batches", "--row-type", "--compare", "--steps-alone"})
    random->excludes(app.get_option(other));
  app.add_option("--floor", values.floor,
                 "With --random: the smallest ratio of W1 to W6 to their limits of all bytes")
      ->check(CLI::Range(0.01, 10.0))
      ->needs(random)
      ->default_str("measured");
  return command;
}

/// Throws CLI::ParseError naming an option of the program that was given but is none of the
/// command's.
void refuse_others(const CLI::App& program, const Command& command) {
  for (const CLI::Option* option : program.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(command.common, name) != command.common.end())
      continue;
    const bool other = command.app->get_option_no_throw(name) != nullptr;
    throw CLI::ValidationError(name, (other ? "it must stand after '" : "it is no option of '") +
                                         command.app->get_name() + "'");
  }
}

int main(int argc, char** argv) {
  CLI::App app(
      "Trains the standard workloads; rates beside the machine's limits. Each "
      "subcommand has a --help of its own.");
  app.fallthrough();  // options that a subcommand lacks are the program's, which refuses them
  app.require_subcommand(0, 1);
  CommonOptions common;
  WithoutCommand values;
  int status = 0;
  const Command workloads = add_workloads(app, values, common, status);
  std::vector<Command> commands;
  for (const auto add : {add_serving, add_checkpoint, add_optimizers, add_reader, add_sharded,
                         add_sweep, add_hot, add_stages, add_small, add_hosts})
    commands.push_back(add(app, common));
  const Command* chosen = &workloads;
  try {
    app.parse(argc, argv);
    for (const Command& command : commands) {
      if (!*command.app) continue;
      refuse_others(app, command);
      chosen = &command;
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  chosen->run();
  return status;
}

}  // namespace
}  // namespace embertable::bench

int main(int argc, char** argv) {
  try {
    return embertable::bench::main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embertable-bench: %s\n", error.what());
    return 1;
  }
}
