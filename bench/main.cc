// embertable-bench: the standard workloads, beside a baseline and beside what the machine could do.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/checkpoint_bench.h"
#include "bench/compare.h"
#include "bench/cpu.h"
#include "bench/load_bench.h"
#include "bench/optimizer_bench.h"
#include "bench/reader_bench.h"
#include "bench/report.h"
#include "bench/self_check.h"
#include "bench/serving_bench.h"
#include "bench/sharded_bench.h"
#include "bench/sweep_bench.h"
#include "bench/validation_bench.h"
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
int run(const std::vector<std::string>& names, const BenchOptions& options, bool json,
        const std::string& stored) {
  std::optional<StoredRun> before;
  if (!stored.empty()) before.emplace(stored);
  std::vector<std::string> lines, moved;
  bool slower = false;
  for (const std::string& name : names) {
    const WorkloadResult result = run_workload(find_workload(name), options);
    std::puts((json ? to_json(result) : to_text(result)).c_str());
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

/// The subcommand that times checkpoints.
struct CheckpointCommand {
  explicit CheckpointCommand(CLI::App& app)
      : command(app.add_subcommand(
            "checkpoint", "Saves and restores a table; rates beside those of plain files.")) {
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    command->add_option("--gib", options.gib, "GiB of rows and slots")
        ->check(CLI::Range(0.001, 4096.0))
        ->capture_default_str();
    command->add_option("--threads", options.threads, "Threads")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    options.directory = ".";
    command->add_option("--dir", options.directory, "Where files are written, and removed")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    command->add_flag("--json", json, "One JSON object instead of text");
    command->add_option("--restore-only", run)->group("");  // the process whose memory is measured
  }

  void execute() const {
    if (!run.empty()) return restore_once(run, options);
    const CheckpointResult result = run_checkpoint_bench(options);
    std::puts((json ? to_json(result) : to_text(result)).c_str());
  }

  CLI::App* command;
  CheckpointBenchOptions options;
  bool json = false;
  std::string run;
};

/// The subcommand that times the rules.
struct OptimizersCommand {
  explicit OptimizersCommand(CLI::App& app)
      : command(app.add_subcommand(
            "optimizers", "Times every optimizer's update beside the rate at which rows move.")) {
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    command->add_option("--threads", options.threads, "Threads")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--rule", options.rule, "Only this optimizer");
    command->add_option("--mib", options.mib, "MiB of rows and slots of a table")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
        ->capture_default_str();
    command->add_flag("--step", step,
                      "Instead: whole steps of W1, adagrad and adam in turns with rowwise_adagrad");
    command->add_option("--rows", options.step_rows, "Rows per table of --step")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
        ->capture_default_str();
    command->add_flag("--json", json, "One JSON object a line instead of text");
  }

  void execute() const {
    step ? run_optimizer_steps(options, json) : run_optimizers(options, json);
  }

  CLI::App* command;
  OptimizerBenchOptions options;
  bool step = false;
  bool json = false;
};

/// The subcommand that times readers of text.
struct ReaderCommand {
  explicit ReaderCommand(CLI::App& app)
      : command(app.add_subcommand(
            "reader", "Reads lines of Criteo's layout; rates beside that of finding their ends")) {
    command->add_option("--rows", options.rows, "Lines")
        ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1} << 31))
        ->capture_default_str();
    command
        ->add_option("--distinct", options.distinct,
                     "Different values of each of the six widest columns; 0: as the challenge's "
                     "sample has them")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
        ->capture_default_str();
    command->add_option("--file", options.file,
                        "Lines of Criteo's layout, plain or compressed, in place of made-up ones");
    command->add_option("--megabytes", options.megabytes, "Repeat the lines up to at least so many")
        ->capture_default_str();
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_flag("--plain", options.plain, "No compressed files");
    command->add_flag("--json", json, "One JSON object instead of text");
  }

  void execute() const {
    const ReaderBenchResult result = run_reader_bench(options);
    std::puts((json ? to_json(result) : to_text(result)).c_str());
  }

  CLI::App* command;
  ReaderBenchOptions options;
  bool json = false;
};

/// The subcommand that times operations on rows of a sharded variable.
struct ShardedCommand {
  explicit ShardedCommand(CLI::App& app)
      : command(app.add_subcommand(
            "sharded", "sparse_read and scatter_add of random rows beside the bare loops")) {
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    command->add_option("--threads", options.threads, "Threads")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--rows", options.rows, "Rows of the variable")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
        ->capture_default_str();
    command->add_option("--named", options.named, "Rows of a call")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31))
        ->capture_default_str();
    command->add_option("--shards", options.shards, "Components")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str();
    command->add_flag("--json", json, "One JSON object instead of text");
  }

  void execute() const {
    const ShardedBenchResult result = run_sharded_bench(options);
    std::fputs((json ? to_json(result) : to_text(result)).c_str(), stdout);
  }

  CLI::App* command;
  ShardedBenchOptions options;
  bool json = false;
};

/// The subcommand that varies one factor at a time.
struct SweepCommand {
  explicit SweepCommand(CLI::App& app)
      : command(app.add_subcommand(
            "sweep", "Varies rows, dim, ids, samples, tables and skew, one at a time.")) {
    command->add_option("--csv", options.csv, "File of the figures, overwritten")->required();
    command->add_option("--svg", options.svg, "File of the picture, overwritten");
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_flag("--quick", options.quick, "Smaller and fewer values");
  }

  CLI::App* command;
  SweepOptions options;
};

/// The subcommand that makes ids hot.
struct HotCommand {
  HotCommand(CLI::App& app, const BenchOptions& common)
      : command(app.add_subcommand(
            "hot", "Batches in which one id makes up 30 % of all entries, or all, beside uniform")),
        options(common) {
    command->add_option("--rows", options.rows, "Rows of tables that no cache holds")
        ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1} << 31))
        ->default_val(10'000'000);
    command->add_option("--threads", options.threads, "Threads")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command->add_option("--repetitions", options.repetitions, "Passes; the median is reported")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_flag("--json", json, "One JSON object a line instead of text");
  }

  CLI::App* command;
  BenchOptions options;
  bool json = false;
};

int main(int argc, char** argv) {
  CLI::App app(
      "Trains the standard workloads; rates beside a baseline's and the machine's limits.");
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const Workload& workload : standard_workloads()) known.push_back(workload.name);
  BenchOptions options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool json = false;
  bool only_check = false;
  app.add_option("--workload", names, "Workloads to run, in this order; all if not given")
      ->check(CLI::IsMember(known));
  app.add_option("--threads", options.threads, "Threads of each lane")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "Passes that count; the median is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--rows", options.rows, "Rows per table instead of the workload's")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  app.add_option("--batches", options.batches, "Batches of a pass instead of the workload's")
      ->check(CLI::Range(1, 100'000));
  app.add_flag("--json", json, "One JSON object a line instead of text");
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
  app.add_flag("--check", only_check, "Compare the bits of all lanes with a scalar loop, and stop");
  ServingBenchOptions serving;
  CLI::App* serve = app.add_subcommand("serving", "Times lookups of tables that are only read");
  serve->add_option("--calls", serving.calls, "Lookups of one sample")
      ->check(CLI::Range(10, 100'000'000))
      ->capture_default_str();
  serve->add_option("--dir", serving.directory,
                    "Also opens a checkpoint, which is written there and removed");
  serve->add_option("--bytes", serving.bytes, "Rows of that checkpoint")
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40))
      ->capture_default_str();
  serve->add_flag("--json", json, "One JSON object a line instead of text");
  const CLI::App* validation = app.add_subcommand(
      "validation", "What the checks of ids and splits cost: takes turns with an engine without");
  const CheckpointCommand checkpoint(app);
  const OptimizersCommand optimizers(app);
  const ReaderCommand reader(app);
  const ShardedCommand sharded(app);
  const SweepCommand sweep(app);
  const HotCommand hot(app, options);
  const CLI::App* stages = app.add_subcommand(
      "stages", "Where the time of a step goes, and the bytes that each stage moves for a lookup");
  CLI11_PARSE(app, argc, argv);
  if (*serve) {
    std::fputs(run_serving(serving, json).c_str(), stdout);
    return 0;
  }
  if (*validation) {
    for (const std::string& name : names.empty() ? known : names) {
      const ValidationResult result = run_validation(find_workload(name), options);
      std::puts((json ? to_json(result) : to_text(result)).c_str());
      std::fflush(stdout);
    }
    return 0;
  }
  if (*checkpoint.command) {
    checkpoint.execute();
    return 0;
  }
  if (*optimizers.command) {
    optimizers.execute();
    return 0;
  }
  if (*reader.command) {
    reader.execute();
    return 0;
  }
  if (*sharded.command) {
    sharded.execute();
    return 0;
  }
  if (*sweep.command) {
    run_sweep(sweep.options);
    return 0;
  }
  if (*hot.command) {
    run_hot(hot.options.threads, hot.options.repetitions, hot.options.rows, hot.json);
    return 0;
  }
  if (*stages) {
    for (const std::string& name : names.empty() ? known : names)
      run_stages(chosen_workload(find_workload(name), options), options.threads,
                 options.repetitions, json);
    return 0;
  }
  if (random) {
    run_random(*random, options.threads, options.repetitions, floor, json);
    return 0;
  }
  if (only_check) return check();
  return run(names.empty() ? known : names, options, json, stored);
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
