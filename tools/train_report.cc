#include "tools/train_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace embertable::tools {
namespace {

using jobs::Baseline;
using jobs::EpochReport;
using jobs::Errors;
using jobs::StartReport;
using jobs::StepReport;
using jobs::TrainReport;
using Json = nlohmann::ordered_json;

constexpr double kSecondsPerRedraw = 0.1;
constexpr int kBarWidth = 24;

std::string minutes(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void clear_line() { fmt::print("\r{:100}\r", ""); }

void print(const Json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace

double value_of(const Errors& errors, const std::string& metric) {
  return metric == "rmse" ? errors.rmse : errors.mae;
}

nlohmann::ordered_json errors_json(const jobs::Job& job, const Errors& errors) {
  Json json = Json::object();
  for (const std::string& metric : job.metrics) json[metric] = value_of(errors, metric);
  return json;
}

TextReport::TextReport(const jobs::Job& job, const jobs::TrainOptions& options)
    : job_(job), options_(options), terminal_(isatty(STDOUT_FILENO) != 0) {}

void TextReport::started(const StartReport& start) {
  print_origin(start);
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

/// Where the run goes on from, if it was asked to.
void TextReport::print_origin(const StartReport& start) const {
  if (!options_.resume) return;
  if (!start.resumed) {
    fmt::print("nothing is saved in {} yet: starts anew\n", options_.out);
    return;
  }
  const StartReport::Resumed& from = *start.resumed;
  for (const std::string& why : from.skipped) fmt::print("not taken, set aside: {}\n", why);
  if (from.epochs >= job_.schedule.epochs) {
    fmt::print("{} holds the finished run: nothing is left to train\n", from.directory.string());
  } else {
    fmt::print("goes on from {}: step {}, {} of {} epochs and {} samples are done\n",
               from.directory.string(), from.step, from.epochs, job_.schedule.epochs, from.samples);
  }
}

void TextReport::stepped(const StepReport& step) {
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

void TextReport::finished_epoch(const EpochReport& epoch) {
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

void TextReport::finished(const TrainReport& report) {
  print_errors(fmt::format("{}, dim {}", job_.model.kind, dim()), report.errors);
  fmt::print("{} steps in {:.2f} s: {:.2f} million ratings/s\n", report.steps, report.seconds,
             report.samples_per_second / 1e6);
  fmt::print("digest {}\n", report.digest);
  if (!report.saved.empty()) fmt::print("saved in {}\n", report.saved.string());
}

void TextReport::interrupted(const TrainReport& report, const Interruption& how) {
  if (terminal_) clear_line();
  fmt::print("interrupted by {} after step {}", how.signal, report.steps);
  if (how.resume.empty()) {
    fmt::print("; nothing is saved without --out\n");
    return;
  }
  if (!report.saved.empty()) fmt::print("; saved in {}", report.saved.string());
  fmt::print("\ngo on with\n  {}\n", how.resume);
}

std::int32_t TextReport::dim() const {
  return jobs::named(job_.tables, jobs::named(job_.features, job_.model.user).table).dim;
}

void TextReport::print_errors(const std::string& name, const Errors& errors) const {
  fmt::print("  {:<22}", name);
  for (const std::string& metric : job_.metrics) fmt::print(" {:>9.4f}", value_of(errors, metric));
  fmt::print("\n");
}

void JsonReport::started(const StartReport& start) {
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
    json["baselines"][baseline.name] = errors_json(job_, {baseline.rmse, baseline.mae});
  }
  if (start.resumed) {
    json["resumed"] = {{"directory", start.resumed->directory.string()},
                       {"step", start.resumed->step},
                       {"epochs", start.resumed->epochs},
                       {"samples", start.resumed->samples},
                       {"skipped", start.resumed->skipped}};
  }
  print(json);
}

void JsonReport::finished_epoch(const EpochReport& epoch) {
  Json json = {{"event", "epoch"}, {"epoch", epoch.epoch}, {"learning_rate", epoch.learning_rate}};
  json["training"] = {{"rmse", epoch.training_rmse}};
  if (epoch.validation) json["validation"] = errors_json(job_, *epoch.validation);
  json["seconds"] = epoch.seconds;
  json["ratings_per_second"] = epoch.samples_per_second;
  print(json);
}

void JsonReport::saved(const jobs::SaveReport& report) {
  print({{"event", "saved"},
         {"step", report.step},
         {"directory", report.directory.string()},
         {"seconds", report.seconds}});
}

void JsonReport::finished(const TrainReport& report) {
  Json json = {{"event", "done"},
               {report.measured_part, errors_json(job_, report.errors)},
               {"digest", report.digest}};
  json["steps"] = report.steps;
  json["seconds"] = report.seconds;
  json["ratings_per_second"] = report.samples_per_second;
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  print(json);
}

void JsonReport::interrupted(const TrainReport& report, const Interruption& how) {
  Json json = {{"event", "interrupted"}, {"signal", how.signal}, {"steps", report.steps}};
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  if (!how.resume.empty()) json["resume"] = how.resume;
  print(json);
}

}  // namespace embertable::tools
