#include "jobs/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/train_report.h"

namespace embertable::tools {
namespace {

struct Arguments {
  std::string job;
  jobs::TrainOptions options;
  std::vector<std::string> changes;
  std::string seed, save_every, keep;
  bool json = false;
};

/// The word as a shell takes it for one.
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

/// Before the run has started a signal ends it as any program: there is nothing to save.
template <class Report>
class Armed final : public Report {
 public:
  Armed(const jobs::Job& job, const jobs::TrainOptions& options, Interrupt& interrupt)
      : Report(job, options), interrupt_(interrupt) {}
  void started(const jobs::StartReport& start) override {
    interrupt_.arm();
    Report::started(start);
  }

 private:
  Interrupt& interrupt_;
};

template <class Report>
void train_with(const jobs::Job& job, jobs::TrainOptions options, Invocation& invocation) {
  Interrupt interrupt;
  options.stop = &interrupt.requested();
  Armed<Report> report(job, options, interrupt);
  const jobs::TrainReport end = jobs::train(job, options, report);
  if (!end.interrupted) {
    report.finished(end);
    return;
  }
  report.interrupted(end, {.signal = interrupt.signal_name(),
                           .resume = options.out.empty() ? "" : resuming(invocation.words)});
  invocation.exit_code = interrupt.exit_code();
}

void run(const Arguments& arguments, Invocation& invocation) {
  std::vector<std::string> changes = arguments.changes;
  if (!arguments.seed.empty()) changes.push_back("seed=" + arguments.seed);
  if (!arguments.save_every.empty()) changes.push_back("checkpoint.every=" + arguments.save_every);
  if (!arguments.keep.empty()) changes.push_back("checkpoint.keep=" + arguments.keep);
  const jobs::Job job = jobs::read_job(arguments.job, changes);
  arguments.json ? train_with<JsonReport>(job, arguments.options, invocation)
                 : train_with<TextReport>(job, arguments.options, invocation);
}

void add_saving(CLI::App& command, Arguments& arguments) {
  CLI::Option* out = command.add_option("--out", arguments.options.out,
                                        "save the run in this directory, new or empty");
  command
      .add_flag("--resume", arguments.options.resume,
                "go on with the run that --out holds; start anew if it holds none")
      ->needs(out);
  command
      .add_option("--save-every", arguments.save_every,
                  "STEPS, epoch or end: short for --set checkpoint.every=")
      ->needs(out);
  command
      .add_option("--keep", arguments.keep,
                  "newest saved steps that stay, 0: all; short for --set checkpoint.keep=N")
      ->needs(out);
}

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train the tables that a job file describes, and measure them");
  command->add_option("JOB", arguments->job, "job file, described in docs/jobs.md")->required();
  command->add_option("--data", arguments->options.data_root, "folder that the job's files are in")
      ->capture_default_str();
  add_saving(*command, *arguments);
  command->add_option("--threads", arguments->options.threads, "0: one for each CPU")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "short for --set seed=N");
  command
      ->add_option("--set", arguments->changes,
                   "KEY=VALUE: a key of the job, as in schedule.epochs=3")
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--json", arguments->json, "print one JSON object a line");
  command->callback([arguments, &invocation] { run(*arguments, invocation); });
}

}  // namespace embertable::tools
