#include "bench/commands.h"

#include <cstdio>
#include <memory>

#include "bench/hosts/run_hosts.h"
#include "bench/loads/standard_loads.h"
#include "bench/others/checkpoint.h"
#include "bench/others/optimizers.h"
#include "bench/others/reader.h"
#include "bench/others/serving.h"
#include "bench/others/serving_row_types.h"
#include "bench/others/sharded.h"
#include "bench/training/run_sweep.h"

namespace embertable::bench {
namespace {

const auto kRowNumbers = CLI::Range(std::int64_t{1}, std::int64_t{1} << 31);

Command add_serving(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand("serving", "Times lookups of tables that are only read");
  auto options = std::make_shared<ServingBenchOptions>();
  command->add_option("--calls", options->calls, "Lookups of one sample")
      ->check(CLI::Range(10, 100'000'000))
      ->capture_default_str();
  CLI::Option* directory = command->add_option(
      "--dir", options->directory, "Also opens a checkpoint, which is written there and removed");
  command->add_option("--bytes", options->bytes, "Rows of that checkpoint")
      ->check(CLI::Range(std::int64_t{1} << 20, std::int64_t{1} << 40))
      ->needs(directory)
      ->capture_default_str();
  auto row_type = std::make_shared<std::string>("float32");
  command
      ->add_option("--row-type", *row_type,
                   "Instead: lookups of rows of this type in turns with the same rows as float32, "
                   "of checkpoints of the size of --bytes as float32")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->needs(directory)
      ->capture_default_str();
  const auto shared = CommonAdder(*command, common).json().names();
  return {command, shared, [options, row_type, &common] {
            const RowType type = parse_row_type(*row_type);
            const std::string text = type == RowType::kFloat32
                                         ? run_serving(*options, common.json)
                                         : run_row_types({.row_type = type,
                                                          .directory = options->directory,
                                                          .bytes = options->bytes},
                                                         common.json);
            std::fputs(text.c_str(), stdout);
          }};
}

Command add_checkpoint(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "checkpoint", "Saves and restores a table; rates beside those of plain files");
  auto options = std::make_shared<CheckpointBenchOptions>();
  auto restored = std::make_shared<std::string>();
  options->directory = ".";
  command->add_option("--gib", options->gib, "GiB of rows and slots")
      ->check(CLI::Range(0.001, 4096.0))
      ->capture_default_str();
  command->add_option("--dir", options->directory, "Where files are written, and removed")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  command->add_option("--restore-only", *restored)
      ->group("");  // for the process whose memory is measured
  const auto shared =
      CommonAdder(*command, common).threads().repetitions(options->repetitions).json().names();
  return {command, shared, [options, restored, &common] {
            options->threads = common.threads_or_all();
            options->repetitions = common.repetitions.value_or(options->repetitions);
            if (!restored->empty()) return restore_once(*restored, *options);
            const CheckpointResult result = run_checkpoint_bench(*options);
            std::puts((common.json ? to_json(result) : to_text(result)).c_str());
          }};
}

Command add_optimizers(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "optimizers", "Times every optimizer's update beside the rate at which rows move");
  auto options = std::make_shared<OptimizerBenchOptions>();
  auto step = std::make_shared<bool>(false);
  command->add_option("--rule", options->rule, "Only this optimizer");
  CLI::Option* mib = command->add_option("--mib", options->mib, "MiB of rows and slots of a table")
                         ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
                         ->capture_default_str();
  CLI::Option* steps = command->add_flag(
      "--step", *step,
      "Instead: whole steps of W1, adagrad and adam in turns with rowwise_adagrad");
  steps->excludes(mib);
  command->add_option("--rows", options->step_rows, "Rows per table of --step")
      ->check(kRowNumbers)
      ->needs(steps)
      ->capture_default_str();
  const auto shared =
      CommonAdder(*command, common).threads().repetitions(options->repetitions).json().names();
  return {command, shared, [options, step, &common] {
            options->threads = common.threads_or_all();
            options->repetitions = common.repetitions.value_or(options->repetitions);
            *step ? run_optimizer_steps(*options, common.json)
                  : run_optimizers(*options, common.json);
          }};
}

Command add_reader(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "reader", "Reads lines of Criteo's layout; rates beside that of finding their ends");
  auto options = std::make_shared<ReaderBenchOptions>();
  CLI::Option* rows = command->add_option("--rows", options->rows, "Lines")
                          ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1} << 31))
                          ->capture_default_str();
  CLI::Option* distinct =
      command
          ->add_option("--distinct", options->distinct,
                       "Different values of each of the six widest columns; 0: as the challenge's "
                       "sample has them")
          ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
          ->capture_default_str();
  command
      ->add_option("--file", options->file,
                   "Lines of Criteo's layout, plain or compressed, in place of made-up ones")
      ->excludes(rows)
      ->excludes(distinct);
  command->add_option("--megabytes", options->megabytes, "Repeat the lines up to at least so many")
      ->capture_default_str();
  command->add_flag("--plain", options->plain, "No compressed files");
  const auto shared =
      CommonAdder(*command, common).repetitions(options->repetitions).json().names();
  return {command, shared, [options, &common] {
            options->repetitions = common.repetitions.value_or(options->repetitions);
            const ReaderBenchResult result = run_reader_bench(*options);
            std::puts((common.json ? to_json(result) : to_text(result)).c_str());
          }};
}

Command add_sharded(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "sharded", "sparse_read and scatter_add of random rows beside the bare loops");
  auto options = std::make_shared<ShardedBenchOptions>();
  command->add_option("--rows", options->rows, "Rows of the variable")
      ->check(kRowNumbers)
      ->capture_default_str();
  command->add_option("--named", options->named, "Rows of a call")
      ->check(kRowNumbers)
      ->capture_default_str();
  command->add_option("--shards", options->shards, "Components")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  const auto shared =
      CommonAdder(*command, common).threads().repetitions(options->repetitions).json().names();
  return {command, shared, [options, &common] {
            options->threads = common.threads_or_all();
            options->repetitions = common.repetitions.value_or(options->repetitions);
            const ShardedBenchResult result = run_sharded_bench(*options);
            std::fputs((common.json ? to_json(result) : to_text(result)).c_str(), stdout);
          }};
}

Command add_sweep(CLI::App& app, CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("sweep", "Varies rows, dim, ids, samples, tables and skew, one at a time");
  auto options = std::make_shared<SweepOptions>();
  command->add_option("--csv", options->csv, "File of the figures, overwritten")->required();
  command->add_option("--factor", options->factor, "Only this one, by its name in the CSV")
      ->check(CLI::IsMember(sweep_factors()))
      ->default_str("all");
  command->add_flag("--quick", options->quick, "Smaller and fewer values");
  const auto shared =
      CommonAdder(*command, common)
          .threads("1 and 2")
          .repetitions(options->repetitions)
          .json()
          .rows("500000; --quick: 100000; the factor 'rows' has its own")
          .batches("4000000 lookups of 3 to 400 batches; --quick: 400000 of 3 to 50")
          .names();
  return {command, shared, [options, &common] {
            if (common.threads) options->threads = {*common.threads};
            options->repetitions = common.repetitions.value_or(options->repetitions);
            options->json = common.json;
            options->rows = common.rows;
            options->batches = common.batches;
            run_sweep(*options);
          }};
}

Command add_hot(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "hot", "Batches in which one id makes up 30 % of all entries, or all, beside uniform ones");
  auto rows = std::make_shared<std::int64_t>(10'000'000);
  command->add_option("--rows", *rows, "Rows of tables that no cache holds")
      ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1} << 31))
      ->capture_default_str();
  const auto shared = CommonAdder(*command, common)
                          .threads()
                          .repetitions(BenchOptions().repetitions)
                          .json()
                          .names();
  return {command, shared, [rows, &common] {
            run_hot(common.threads_or_all(), common.of_workloads().repetitions, *rows, common.json);
          }};
}

Command add_stages(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "stages", "Where the time of a step goes, and the bytes that each stage moves for a lookup");
  return {command, add_options_of_workloads(*command, common), [&common] {
            for (const std::string& name : common.workloads_or_all())
              run_stages(find_standard_load(name), common.of_workloads(), common.json);
          }};
}

Command add_small(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "small", "Steps of few lookups, and the share of their time that is paid once");
  const auto shared = CommonAdder(*command, common)
                          .threads()
                          .repetitions(BenchOptions().repetitions)
                          .rows("2000000, of tables that no cache holds")
                          .json()
                          .names();
  return {command, shared, [&common] { run_small(common.of_workloads(), common.json); }};
}

Command add_hosts(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "hosts", "One host in each process of mpirun, in turns with hosts that are threads");
  auto options = std::make_shared<HostsBenchOptions>();
  command
      ->add_option("--transport", options->transport,
                   "What the report calls the way that messages go")
      ->default_str("OMPI_MCA_btl, where it is set");
  const auto shared =
      CommonAdder(*command, common)
          .workloads("W1 W2")
          .repetitions(options->repetitions)
          .rows("the workload's, halved until three copies fit into the free memory")
          .batches("the workload's")
          .json()
          .names();
  return {command, shared, [options, &common] {
            options->repetitions = common.repetitions.value_or(options->repetitions);
            options->rows = common.rows;
            options->batches = common.batches;
            const auto exchange = make_hosts_exchange();
            for (const std::string& name : common.workloads.empty()
                                               ? std::vector<std::string>{"W1", "W2"}
                                               : common.workloads) {
              const HostsResult result = run_hosts(find_standard_load(name), *options, exchange);
              if (exchange && exchange->host() != 0) continue;
              std::puts((common.json ? to_json(result) : to_text(result)).c_str());
              std::fflush(stdout);
            }
          }};
}

}  // namespace

std::vector<std::string> add_options_of_workloads(CLI::App& app, CommonOptions& common) {
  return CommonAdder(app, common)
      .workloads()
      .threads()
      .repetitions(BenchOptions().repetitions)
      .rows("the workload's, halved until two copies fit into the free memory")
      .batches("the workload's")
      .row_type()
      .json()
      .names();
}

std::vector<Command> add_commands(CLI::App& app, CommonOptions& common) {
  app.fallthrough();  // options that a subcommand lacks are the program's, which refuses them
  app.require_subcommand(0, 1);
  return {add_serving(app, common), add_checkpoint(app, common), add_optimizers(app, common),
          add_reader(app, common),  add_sharded(app, common),    add_sweep(app, common),
          add_hot(app, common),     add_stages(app, common),     add_small(app, common),
          add_hosts(app, common)};
}

}  // namespace embertable::bench
