// embertable-bench: the standard workloads, beside a baseline and beside what the machine could do.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/commands.h"
#include "bench/compare.h"
#include "bench/cpu.h"
#include "bench/load_bench.h"
#include "bench/report.h"
#include "bench/self_check.h"
#include "bench/workload_bench.h"

namespace embertable::bench {
namespace {

int check() {
  if (!has_avx512()) std::puts("baseline: not checked, this CPU lacks AVX-512");
  const std::string wrong = check_lanes();
  std::fputs(wrong.empty() ? "every lane gives the bits of the scalar loop\n" : wrong.c_str(),
             stdout);
  return wrong.empty() ? 0 : 1;
}

/// Returns the exit status: 1 where a workload is slower than in the stored run, if there is one.
int run(const CommonOptions& common, const std::string& stored) {
  std::optional<StoredRun> before;
  if (!stored.empty()) before.emplace(stored);
  std::vector<std::string> lines, moved;
  bool slower = false;
  for (const std::string& name : common.workloads) {
    const WorkloadResult result = run_workload(find_workload(name), common.of_workloads());
    std::puts((common.json ? to_json(result) : to_text(result)).c_str());
    std::fflush(stdout);
    if (!before) continue;
    const StoredRun::Comparison comparison = before->compare(result);
    lines.push_back(comparison.text);
    if (comparison.slower || comparison.faster) moved.push_back(name);
    slower |= comparison.slower;
  }
  if (!before) return 0;
  for (const std::string& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
  for (const std::string& name : moved)
    std::fprintf(stderr, "%s moved by more than 10 %%\n", name.c_str());
  return slower ? 1 : 0;
}

int main(int argc, char** argv) {
  CLI::App app(
      "Trains the standard workloads; rates beside a baseline's and the machine's limits.");
  CommonOptions common;
  std::vector<std::string> known;
  for (const Workload& workload : standard_workloads()) known.push_back(workload.name);
  common.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("--workload", common.workloads,
                 "Workloads to run, in this order; all if not given")
      ->check(CLI::IsMember(known));
  app.add_option("--threads", common.threads, "Threads of each lane")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--repetitions", common.repetitions, "Passes that count; the median is reported")
      ->check(CLI::Range(1, 1000));
  app.add_option("--rows", common.rows, "Rows per table instead of the workload's")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  app.add_option("--batches", common.batches, "Batches of a pass instead of the workload's")
      ->check(CLI::Range(1, 100'000));
  app.add_flag("--json", common.json, "One JSON object a line instead of text");
  std::string stored;
  app.add_option("--compare", stored,
                 "A run as --json printed it: says whose ratios to the limits moved by more than "
                 "10 %; exit status 1 where one fell")
      ->check(CLI::ExistingFile);
  std::optional<std::uint64_t> random;
  app.add_option("--random", random,
                 "Instead: a load of mixed tables and features that this seed decides");
  std::optional<double> floor;
  app.add_option("--floor", floor,
                 "With --random: the smallest ratio of W1 to W6 to their limits of all bytes, "
                 "instead of measuring it")
      ->check(CLI::Range(0.01, 10.0));
  bool only_check = false;
  app.add_flag("--check", only_check, "Compare the bits of all lanes with a scalar loop, and stop");
  const std::vector<Command> commands = add_commands(app);
  CLI11_PARSE(app, argc, argv);

  if (common.workloads.empty()) common.workloads = known;
  for (const Command& command : commands) {
    if (!*command.app) continue;
    command.run(common);
    return 0;
  }
  if (random) {
    run_random(*random, common.threads, common.of_workloads().repetitions, floor, common.json);
    return 0;
  }
  return only_check ? check() : run(common, stored);
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
