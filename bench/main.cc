// embertable-bench measures the standard workloads against the limits of the machine.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/commands.h"
#include "bench/common_options.h"
#include "bench/loads/standard_loads.h"
#include "bench/training/compare.h"
#include "bench/training/run_workload.h"

namespace embertable::bench {
namespace {

std::vector<RunRatios> read_stored(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("'" + path + "' cannot be read");
  return read_run(text.str(), path);
}

/// Prints how a run compares with the stored one. Returns the exit status: 1 if a workload became
/// slower.
int report_comparison(const std::vector<RunRatios>& before, const std::string& now) {
  const RunComparison found = compare_runs(before, read_run(now, "this run"));
  for (const std::string& line : found.lines) std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::vector<std::string>& moved : {found.slower, found.faster})
    for (const std::string& name : moved)
      std::fprintf(stderr, "%s moved by more than 10 %%\n", name.c_str());
  if (found.compared == 0)
    throw std::runtime_error("--compare: no workload ran as in the stored run");
  return found.slower.empty() ? 0 : 1;
}

/// Returns the exit status: 1 where a workload is slower than in the stored run, if there is one.
int run(const CommonOptions& common, const std::string& stored) {
  std::vector<RunRatios> before;
  if (!stored.empty()) before = read_stored(stored);
  std::string now;
  for (const std::string& name : common.workloads_or_all()) {
    const WorkloadResult result = run_workload(find_standard_load(name), common.of_workloads());
    const std::string json = to_json(result);
    now += json + "\n";
    std::puts((common.json ? json : to_text(result)).c_str());
    std::fflush(stdout);
  }
  return stored.empty() ? 0 : report_comparison(before, now);
}

/// The options of a run without a subcommand.
struct WithoutCommand {
  std::string stored;
  std::optional<std::uint64_t> random;
  std::optional<double> floor;
};

void add_options(CLI::App& app, WithoutCommand& values, CommonOptions& common) {
  add_options_of_workloads(app, common);
  app.add_option("--compare", values.stored,
                 "A run as --json printed it: says whose ratios to the limits moved by more than "
                 "10 %; exit status 1 where one fell")
      ->check(CLI::ExistingFile);
  CLI::Option* random =
      app.add_option("--random", values.random,
                     "Instead: a load of mixed tables and features that this seed decides");
  for (CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    constexpr std::string_view kTaken[] = {"--help", "--random", "--threads", "--repetitions",
                                           "--json"};
    if (std::ranges::find(kTaken, name) == std::end(kTaken)) random->excludes(option);
  }
  app.add_option("--floor", values.floor,
                 "With --random: the smallest ratio of W1 to W6 to their limits of all bytes")
      ->check(CLI::Range(0.01, 10.0))
      ->needs(random)
      ->default_str("measured");
}

int main(int argc, char** argv) {
  CLI::App app(
      "Trains the standard workloads; rates beside the machine's limits. Each "
      "subcommand has a --help of its own.");
  CommonOptions common;
  WithoutCommand values;
  add_options(app, values, common);
  const std::vector<Command> commands = add_commands(app, common);
  const Command* chosen = nullptr;
  try {
    app.parse(argc, argv);
    for (const Command& command : commands)
      if (*command.app) chosen = &command;
    if (chosen != nullptr) refuse_others(app, *chosen->app, chosen->common);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }

  if (chosen != nullptr) {
    chosen->run();
    return 0;
  }
  if (values.random) {
    const BenchOptions options = common.of_workloads();
    run_random(*values.random, options.threads, options.repetitions, values.floor, common.json);
    return 0;
  }
  return run(common, values.stored);
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
