#include "apps/jobs/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/job_options.h"
#include "apps/cli/train_report.h"
#include "apps/jobs/run/metrics_csv.h"
#include "apps/jobs/run/ranks.h"
#include "apps/jobs/run/tensorboard.h"
#include "embertable/errors.h"
#include "embertable/exchange.h"

namespace embertable::tools {
namespace {

struct TrainArguments {
  std::string job;
  jobs::TrainOptions options;
  std::vector<std::string> changes;
  std::string seed, save_every, keep;
  std::string csv, tensorboard;
  bool show = false;
  bool json = false;
  std::string exchange;
  double deadline = 60;
};

/// Passes events to several observers, in their order. Signals are caught only once the run has
/// started, because before there is nothing to save.
class Observers final : public jobs::TrainObserver {
 public:
  Observers(std::vector<jobs::TrainObserver*> all, Interrupt& interrupt, Notice notice)
      : all_(std::move(all)), interrupt_(interrupt), notice_(notice) {}
  void started(const jobs::StartReport& start) override {
    interrupt_.arm(notice_);
    for (jobs::TrainObserver* one : all_) one->started(start);
  }
  void stepped(const jobs::StepReport& step) override {
    for (jobs::TrainObserver* one : all_) one->stepped(step);
  }
  void finished_epoch(const jobs::EpochReport& epoch) override {
    for (jobs::TrainObserver* one : all_) one->finished_epoch(epoch);
  }
  void saving(std::int64_t step) override {
    for (jobs::TrainObserver* one : all_) one->saving(step);
  }
  void saved(const jobs::SaveReport& report) override {
    for (jobs::TrainObserver* one : all_) one->saved(report);
  }
  void finished(const jobs::TrainReport& report) override {
    for (jobs::TrainObserver* one : all_) one->finished(report);
  }

 private:
  std::vector<jobs::TrainObserver*> all_;
  Interrupt& interrupt_;
  const Notice notice_;
};

template <class Report>
void train_with(const jobs::Job& job, const TrainArguments& arguments, Invocation& invocation) {
  Interrupt interrupt;
  jobs::TrainOptions options = arguments.options;
  options.stop = [&] { return interrupt.requested(); };
  const bool reports = !options.exchange || options.exchange->host() == 0;
  const Notice notice = !reports              ? Notice::kNone
                        : options.out.empty() ? Notice::kStops
                                              : Notice::kStopsAndSaves;
  if (!reports) interrupt.arm(notice);
  Report report(job, options);
  jobs::MetricsCsv csv(arguments.csv);
  jobs::TensorBoard board(arguments.tensorboard);
  std::vector<jobs::TrainObserver*> all = {&report};
  if (!arguments.csv.empty()) all.push_back(&csv);
  if (!arguments.tensorboard.empty()) all.push_back(&board);
  Observers observers(std::move(all), interrupt, notice);
  const jobs::TrainReport end = jobs::train(job, options, observers);
  if (!end.interrupted) return;
  invocation.exit_code = interrupt.exit_code();
  if (!reports) return;
  report.interrupted(end, {.signal = interrupt.signal_name(),
                           .resume = options.out.empty() ? "" : resuming(invocation)});
}

void run(TrainArguments arguments, Invocation& invocation) {
  std::vector<jobs::Change> changes = changes_of(arguments.changes);
  const auto add = [&](const char* option, const char* key, const std::string& value) {
    if (!value.empty()) changes.push_back(change_by(option, key, value));
  };
  add("--seed", "seed", arguments.seed);
  add("--save-every", "checkpoint.every", arguments.save_every);
  add("--keep", "checkpoint.keep", arguments.keep);
  if (arguments.show) {
    fmt::print("{}", jobs::job_with_defaults(arguments.job, changes));
    return;
  }
  const jobs::Job job = jobs::read_job(arguments.job, changes);
  arguments.json ? train_with<JsonReport>(job, arguments, invocation)
                 : train_with<TextReport>(job, arguments, invocation);
}

/// True if torchrun has started this process as one of several.
bool is_under_torchrun() {
  for (const char* name : {"RANK", "LOCAL_RANK", "MASTER_ADDR"})
    if (std::getenv(name) == nullptr) return false;
  const char* const size = std::getenv("WORLD_SIZE");
  return size != nullptr && std::string_view(size) != "1";
}

/// Returns what connects this process with the others that a launcher started; null if it is alone.
std::shared_ptr<Exchange> connect(const TrainArguments& arguments, const Invocation& invocation) {
  const bool chosen = arguments.exchange == "torch";
  if (chosen || (arguments.exchange.empty() && is_under_torchrun())) {
    if (invocation.torch) return invocation.torch(arguments.deadline);
    if (chosen || !find_mpi_launcher()) {
      throw ValueError(
          "the processes of torchrun are connected by Python: start them as in torchrun "
          "--nproc-per-node 2 -m embertable train JOB.toml --out DIR");
    }
  }
  // A launcher of MPICH sends this signal to the processes that are left when one of them ended.
  if (find_mpi_launcher()) std::signal(SIGUSR1, SIG_IGN);
  const MpiOptions options = {.deadline_seconds = arguments.deadline};
  return arguments.exchange == "mpi" ? make_mpi_exchange(options) : jobs::find_others(options);
}

/// Trains as one of several processes. Host 0 alone prints errors, or host 1 where host 0 may be
/// the one that is lost.
void run_together(TrainArguments arguments, const std::shared_ptr<Exchange>& exchange,
                  Invocation& invocation) {
  const auto ranks = std::make_shared<jobs::Ranks>(exchange, nullptr);
  arguments.options.exchange = ranks;
  try {
    ranks->together([&] { run(arguments, invocation); });
  } catch (const jobs::HostLost& error) {
    invocation.exit_code = kTryAgain;
    if (ranks->host() <= 1) print_message(error.what());
  } catch (const GivenUp&) {
    if (ranks->is_first()) throw;
    invocation.exit_code = kFailed;
  } catch (const std::exception& error) {
    if (ranks->is_first()) throw std::runtime_error(fmt::format("host 0: {}", error.what()));
    invocation.exit_code = kFailed;
  }
}

void add_reading(CLI::App& command, TrainArguments& arguments) {
  add_data(command, arguments.options.data_root);
  command
      .add_flag("--show", arguments.show, "print the job with all its defaults, and train nothing")
      ->excludes(command.add_flag("--json", arguments.json, "print one JSON object per line"));
  add_skip_bad(command, arguments.options.skip_bad);
}

void add_saving(CLI::App& command, TrainArguments& arguments) {
  arguments.options.option_prefix = "--";
  CLI::Option* out = command
                         .add_option("--out", arguments.options.out,
                                     "save the run in this directory, new or empty")
                         ->check(not_empty());
  CLI::Option* resume = command
                            .add_flag("--resume", arguments.options.resume,
                                      "resume the run in --out; start a new one if there is none")
                            ->needs(out);
  command
      .add_flag("--overwrite", arguments.options.overwrite,
                "remove the run in --out once this one has read its data")
      ->needs(out)
      ->excludes(resume);
  command
      .add_option("--save-every", arguments.save_every,
                  "STEPS, epoch or end: short for --set checkpoint.every=")
      ->check(not_empty())
      ->needs(out);
  command
      .add_option("--keep", arguments.keep,
                  "number of newest saved steps to keep, 0: all; short for --set checkpoint.keep=N")
      ->check(not_empty())
      ->needs(out);
}

}  // namespace

std::string resuming(const Invocation& invocation) {
  const std::vector<std::string>& words = invocation.words;
  std::string command;
  for (const std::string& word : invocation.program)
    command += (command.empty() ? "" : " ") + shell_word(word);
  for (const std::string& word : words) {
    if (word != "--overwrite") command += " " + shell_word(word);
  }
  const bool resumed = std::find(words.begin(), words.end(), "--resume") != words.end();
  return command + (resumed ? "" : " --resume");
}

void add_train(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train the tables that a job file describes, and measure them");
  command->add_option("JOB", arguments->job, "job file, described in docs/jobs.md")->required();
  add_reading(*command, *arguments);
  add_saving(*command, *arguments);
  add_threads(*command, arguments->options.threads);
  command->add_option("--seed", arguments->seed, "short for --set seed=N")->check(not_empty());
  add_changes(*command, arguments->changes,
              "KEY=VALUE: sets a key of the job, as in schedule.epochs=3");
  command->add_option("--csv", arguments->csv, "write a row for each epoch to this file")
      ->check(not_empty());
  command
      ->add_option("--tensorboard", arguments->tensorboard,
                   "write event files for TensorBoard to this folder")
      ->check(not_empty());
  command
      ->add_option("--exchange", arguments->exchange,
                   "mpi or torch: what connects several processes, if not what the launcher shows")
      ->check(CLI::IsMember({"mpi", "torch"}));
  command
      ->add_option("--deadline", arguments->deadline,
                   "of several processes: seconds without a message after which one is lost")
      ->check(above_zero())
      ->capture_default_str();
  command->callback([arguments, &invocation] {
    const std::shared_ptr<Exchange> exchange = connect(*arguments, invocation);
    exchange && exchange->hosts() > 1 ? run_together(*arguments, exchange, invocation)
                                      : run(*arguments, invocation);
  });
}

}  // namespace embertable::tools
