#include "jobs/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace embertable::tools {
namespace {

using jobs::Baseline;
using jobs::EpochReport;
using jobs::Errors;
using jobs::StartReport;
using jobs::StepReport;
using jobs::TrainReport;

constexpr double kSecondsPerRedraw = 0.1;
constexpr int kBarWidth = 24;

double value_of(const Errors& errors, const std::string& metric) {
  return metric == "rmse" ? errors.rmse : errors.mae;
}

std::string minutes(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// A run as text: a bar that moves where it is a terminal, a line for each epoch elsewhere.
class TextReport : public jobs::TrainObserver {
 public:
  explicit TextReport(const jobs::Job& job) : job_(job) {}

  void started(const StartReport& start) override {
    fmt::print("{}: {} samples train, {} {} samples are measured, read in {:.2f} s\n", job_.name,
               start.training, start.measured, start.measured_part, start.read_seconds);
    for (const StartReport::Ids& ids : start.ids) {
      fmt::print("  {:<22} {:>9} keys", ids.name, ids.keys);
      if (ids.without_record > 0)
        fmt::print(" ({} lists are empty: the side table lacks them)", ids.without_record);
      fmt::print("\n");
    }
    fmt::print("{:<24}", start.measured_part);
    for (const std::string& metric : job_.metrics) fmt::print(" {:>9}", metric);
    fmt::print("\n");
    for (const Baseline& baseline : start.baselines)
      print_errors(baseline.name, {baseline.rmse, baseline.mae});
    std::fflush(stdout);
  }

  void stepped(const StepReport& step) override {
    if (!terminal_ || step.seconds < drawn_ + kSecondsPerRedraw) return;
    drawn_ = step.seconds;
    const double share = static_cast<double>(step.done) / static_cast<double>(step.total);
    const double rate = static_cast<double>(step.done) / step.seconds;
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    fmt::print("\r  epoch {:>3}/{} [{}{}] rmse {:.4f}  {:.1f} M/s  {} left ", step.epoch,
               job_.schedule.epochs, std::string(filled, '='), std::string(kBarWidth - filled, ' '),
               step.rmse, rate / 1e6, minutes(step.seconds * (1 - share) / share));
    std::fflush(stdout);
  }

  void finished_epoch(const EpochReport& epoch) override {
    if (terminal_) {
      if (epoch.epoch == job_.schedule.epochs) clear_line();
      if (!epoch.validation) return;
      clear_line();
    }
    fmt::print("  epoch {:>3}/{}  rate {:.5f}  training rmse {:.4f}", epoch.epoch,
               job_.schedule.epochs, epoch.learning_rate, epoch.training_rmse);
    if (epoch.validation) {
      for (const std::string& metric : job_.metrics) {
        fmt::print("  validation {} {:.4f}", metric, value_of(*epoch.validation, metric));
      }
    }
    fmt::print("  {:.1f} M/s\n", epoch.samples_per_second / 1e6);
    std::fflush(stdout);
  }

  void finished(const TrainReport& report) {
    print_errors(fmt::format("{}, dim {}", job_.model.kind, dim()), report.errors);
    fmt::print("{} steps in {:.2f} s: {:.2f} million ratings/s\n", report.steps, report.seconds,
               report.samples_per_second / 1e6);
    fmt::print("digest {}\n", report.digest);
    if (!report.saved.empty()) fmt::print("saved in {}\n", report.saved.string());
  }

 private:
  std::int32_t dim() const {
    return jobs::named(job_.tables, jobs::named(job_.features, job_.model.user).table).dim;
  }

  void clear_line() { fmt::print("\r{:100}\r", ""); }

  void print_errors(const std::string& name, const Errors& errors) const {
    fmt::print("  {:<22}", name);
    for (const std::string& metric : job_.metrics)
      fmt::print(" {:>9.4f}", value_of(errors, metric));
    fmt::print("\n");
  }

  const jobs::Job& job_;
  const bool terminal_ = isatty(STDOUT_FILENO) != 0;
  double drawn_ = 0;
};

/// A run as one JSON object a line.
class JsonReport : public jobs::TrainObserver {
 public:
  explicit JsonReport(const jobs::Job& job) : job_(job) {}

  void started(const StartReport& start) override {
    Json json = {
        {"event", "start"}, {"job", job_.name}, {"model", job_.model.kind}, {"seed", job_.seed}};
    json["hosts"] = job_.strategy.hosts;
    json["replicas"] = job_.strategy.replicas;
    json["threads"] = start.threads;
    json["training_samples"] = start.training;
    json[start.measured_part + "_samples"] = start.measured;
    for (const StartReport::Ids& ids : start.ids) {
      json["ids"][ids.name] = {{"keys", ids.keys}, {"without_record", ids.without_record}};
    }
    for (const Baseline& baseline : start.baselines) {
      json["baselines"][baseline.name] = errors({baseline.rmse, baseline.mae});
    }
    print(json);
  }

  void finished_epoch(const EpochReport& epoch) override {
    Json json = {
        {"event", "epoch"}, {"epoch", epoch.epoch}, {"learning_rate", epoch.learning_rate}};
    json["training"] = {{"rmse", epoch.training_rmse}};
    if (epoch.validation) json["validation"] = errors(*epoch.validation);
    json["seconds"] = epoch.seconds;
    json["ratings_per_second"] = epoch.samples_per_second;
    print(json);
  }

  void finished(const TrainReport& report) {
    Json json = {{"event", "done"},
                 {report.measured_part, errors(report.errors)},
                 {"digest", report.digest}};
    json["steps"] = report.steps;
    json["seconds"] = report.seconds;
    json["ratings_per_second"] = report.samples_per_second;
    if (!report.saved.empty()) json["saved"] = report.saved.string();
    print(json);
  }

 private:
  using Json = nlohmann::ordered_json;

  Json errors(const Errors& errors) const {
    Json json = Json::object();
    for (const std::string& metric : job_.metrics) json[metric] = value_of(errors, metric);
    return json;
  }

  static void print(const Json& json) {
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
  }

  const jobs::Job& job_;
};

struct Arguments {
  std::string job;
  jobs::TrainOptions options;
  std::vector<std::string> changes;
  std::string seed;
  bool json = false;
};

template <class Report>
void train_with(const jobs::Job& job, const jobs::TrainOptions& options) {
  Report report(job);
  report.finished(jobs::train(job, options, report));
}

void run(const Arguments& arguments) {
  std::vector<std::string> changes = arguments.changes;
  if (!arguments.seed.empty()) changes.push_back("seed=" + arguments.seed);
  const jobs::Job job = jobs::read_job(arguments.job, changes);
  arguments.json ? train_with<JsonReport>(job, arguments.options)
                 : train_with<TextReport>(job, arguments.options);
}

}  // namespace

void add_train(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("train", "Train the tables that a job file describes, and measure them");
  command->add_option("JOB", arguments->job, "job file, described in docs/jobs.md")->required();
  command->add_option("--data", arguments->options.data_root, "folder that the job's files are in")
      ->capture_default_str();
  command->add_option("--out", arguments->options.out,
                      "save the trained tables in this directory, new or empty");
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
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
