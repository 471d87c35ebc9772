#include "apps/jobs/run/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/train_report.h"
#include "apps/jobs/run/metrics_csv.h"
#include "apps/jobs/run/tensorboard.h"

namespace embertable::tools {
namespace {

struct TrainArguments {
  std::string job;
  jobs::TrainOptions options;
  std::vector<std::string> changes;
  std::string seed, save_every, keep;
  std::string csv, tensorboard;
  bool json = false;
};

/// Quotes a word for a shell, if it needs quotes.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string resuming(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + quoted(word);
  const bool resumed = std::find(words.begin(), words.end(), "--resume") != words.end();
  return command + (resumed ? "" : " --resume");
}

/// Passes events to several observers, in their order. Signals are caught only once the run has
/// started, because before there is nothing to save.
class Observers final : public jobs::TrainObserver {
 public:
  Observers(std::vector<jobs::TrainObserver*> all, Interrupt& interrupt)
      : all_(std::move(all)), interrupt_(interrupt) {}
  void started(const jobs::StartReport& start) override {
    interrupt_.arm();
    for (jobs::TrainObserver* one : all_) one->started(start);
  }
  void stepped(const jobs::StepReport& step) override {
    for (jobs::TrainObserver* one : all_) one->stepped(step);
  }
  void finished_epoch(const jobs::EpochReport& epoch) override {
    for (jobs::TrainObserver* one : all_) one->finished_epoch(epoch);
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
};

template <class Report>
void train_with(const jobs::Job& job, const TrainArguments& arguments, Invocation& invocation) {
  Interrupt interrupt;
  jobs::TrainOptions options = arguments.options;
  options.stop = &interrupt.requested();
  Report report(job, options);
  jobs::MetricsCsv csv(arguments.csv);
  jobs::TensorBoard board(arguments.tensorboard);
  std::vector<jobs::TrainObserver*> all = {&report};
  if (!arguments.csv.empty()) all.push_back(&csv);
  if (!arguments.tensorboard.empty()) all.push_back(&board);
  Observers observers(std::move(all), interrupt);
  const jobs::TrainReport end = jobs::train(job, options, observers);
  if (!end.interrupted) return;
  report.interrupted(end, {.signal = interrupt.signal_name(),
                           .resume = options.out.empty() ? "" : resuming(invocation.words)});
  invocation.exit_code = interrupt.exit_code();
}

void run(const TrainArguments& arguments, Invocation& invocation) {
  std::vector<std::string> changes = arguments.changes;
  if (!arguments.seed.empty()) changes.push_back("seed=" + arguments.seed);
  if (!arguments.save_every.empty()) changes.push_back("checkpoint.every=" + arguments.save_every);
  if (!arguments.keep.empty()) changes.push_back("checkpoint.keep=" + arguments.keep);
  const jobs::Job job = jobs::read_job(arguments.job, changes);
  arguments.json ? train_with<JsonReport>(job, arguments, invocation)
                 : train_with<TextReport>(job, arguments, invocation);
}

void add_reading(CLI::App& command, jobs::TrainOptions& options) {
  command.add_option("--data", options.data_root, "folder that contains the job's files")
      ->capture_default_str();
  command
      .add_option("--skip-bad", options.skip_bad,
                  "maximum number of broken lines of the data to leave out and count")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_saving(CLI::App& command, TrainArguments& arguments) {
  CLI::Option* out = command.add_option("--out", arguments.options.out,
                                        "save the run in this directory, new or empty");
  command
      .add_flag("--resume", arguments.options.resume,
                "resume the run in --out; start a new one if there is none")
      ->needs(out);
  command
      .add_option("--save-every", arguments.save_every,
                  "STEPS, epoch or end: short for --set checkpoint.every=")
      ->needs(out);
  command
      .add_option("--keep", arguments.keep,
                  "number of newest saved steps to keep, 0: all; short for --set checkpoint.keep=N")
      ->needs(out);
}

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train the tables that a job file describes, and measure them");
  command->add_option("JOB", arguments->job, "job file, described in docs/jobs.md")->required();
  add_reading(*command, arguments->options);
  add_saving(*command, *arguments);
  command
      ->add_option("--threads", arguments->options.threads,
                   "number of threads; 0: one for each CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "short for --set seed=N");
  command
      ->add_option("--set", arguments->changes,
                   "KEY=VALUE: sets a key of the job, as in schedule.epochs=3")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--csv", arguments->csv, "write a row for each epoch to this file");
  command->add_option("--tensorboard", arguments->tensorboard,
                      "write event files for TensorBoard to this folder");
  command->add_flag("--json", arguments->json, "print one JSON object per line");
  command->callback([arguments, &invocation] { run(*arguments, invocation); });
}

}  // namespace embertable::tools
