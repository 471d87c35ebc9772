#include "apps/cli/train_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace embertable::tools {
namespace {

using jobs::Baseline;
using jobs::EpochReport;
using jobs::Measure;
using jobs::Measures;
using jobs::StartReport;
using jobs::StepReport;
using jobs::TrainReport;
using OrderedJson = nlohmann::ordered_json;

constexpr double kSecondsPerRedraw = 0.1;
constexpr int kBarWidth = 24;

std::string minutes(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

void clear_line() { fmt::print("\r{:100}\r", ""); }

void print(const OrderedJson& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace

nlohmann::ordered_json measures_json(const jobs::Measures& measures) {
  OrderedJson json = OrderedJson::object();
  for (const Measure& measure : measures) json[measure.name] = measure.value;
  return json;
}

TextReport::TextReport(const jobs::Job& job, const jobs::TrainOptions& options)
    : job_(job), options_(options), terminal_(isatty(STDOUT_FILENO) != 0) {}

void TextReport::started(const StartReport& start) {
  print_origin(start);
  fmt::print("{}: {} training samples, {} {} samples to measure, read in {:.2f} s\n", job_.name,
             start.training, start.measured, start.measured_part, start.read_seconds);
  if (start.left_out > 0) {
    fmt::print("  {} broken record{} left out\n", start.left_out,
               start.left_out == 1 ? " is" : "s are");
  }
  for (const StartReport::Ids& ids : start.ids) {
    if (ids.keys == 0 && ids.rows > 0) {
      fmt::print("  {:<22} hashed into {} rows", ids.name, ids.rows);
    } else {
      fmt::print("  {:<22} {:>9} keys", ids.name, ids.keys);
    }
    if (ids.without_record > 0)
      fmt::print(" ({} lists are empty: the side table lacks their keys)", ids.without_record);
    fmt::print("\n");
  }
  fmt::print("{:<24}", start.measured_part);
  for (const std::string& metric : job_.metrics) fmt::print(" {:>9}", metric);
  fmt::print("\n");
  for (const Baseline& baseline : start.baselines)
    print_measures(baseline.name, select(baseline.measures, job_.metrics));
  std::fflush(stdout);
}

/// Prints where a run that is to be resumed goes on.
void TextReport::print_origin(const StartReport& start) const {
  if (!options_.resume) return;
  if (!start.resumed) {
    fmt::print("nothing is saved in {} yet: starts anew\n", options_.out);
    return;
  }
  const StartReport::Resumed& from = *start.resumed;
  for (const std::string& why : from.skipped) fmt::print("skipped and set aside: {}\n", why);
  if (from.epochs >= job_.schedule.epochs) {
    fmt::print("{} holds the finished run: nothing is left to train\n", from.directory.string());
  } else {
    fmt::print("resumes from {}: step {}, {} of {} epochs and {} samples are done\n",
               from.directory.string(), from.step, from.epochs, job_.schedule.epochs, from.samples);
  }
}

void TextReport::stepped(const StepReport& step) {
  if (!terminal_ || step.seconds < drawn_ + kSecondsPerRedraw) return;
  drawn_ = step.seconds;
  const double rate = static_cast<double>(step.trained) / step.seconds;
  const auto filled = static_cast<std::size_t>(step.share * kBarWidth);
  fmt::print("\r  epoch {:>3}/{} [{}{}] {} {:.4f}  {:.2f} M/s  {} left ", step.epoch,
             job_.schedule.epochs, std::string(filled, '='), std::string(kBarWidth - filled, ' '),
             step.training.name, step.training.value, rate / 1e6,
             minutes(step.seconds * (1 - step.share) / step.share));
  std::fflush(stdout);
}

void TextReport::finished_epoch(const EpochReport& epoch) {
  if (terminal_) {
    if (epoch.epoch == job_.schedule.epochs) clear_line();
    if (epoch.validation.empty()) return;
    clear_line();
  }
  fmt::print("  epoch {:>3}/{}  rate {:.5f}  training {} {:.4f}", epoch.epoch, job_.schedule.epochs,
             epoch.learning_rate, epoch.training.name, epoch.training.value);
  for (const Measure& measure : epoch.validation)
    fmt::print("  validation {} {:.4f}", measure.name, measure.value);
  fmt::print("  {:.2f} M/s{}\n", epoch.samples_per_second / 1e6, epoch.best ? "  best" : "");
  std::fflush(stdout);
}

void TextReport::finished(const TrainReport& report) {
  if (report.best_epoch > 0) fmt::print("the tables are those after epoch {}\n", report.best_epoch);
  print_measures(fmt::format("{}, dim {}", job_.model_kind, job_.tables.front().dim),
                 report.measures);
  fmt::print("{} steps in {:.2f} s: {:.2f} million samples/s\n", report.steps, report.seconds,
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
  fmt::print("\nresume with\n  {}\n", how.resume);
}

void TextReport::print_measures(const std::string& name, const Measures& measures) const {
  fmt::print("  {:<22}", name);
  for (const Measure& measure : measures) fmt::print(" {:>9.4f}", measure.value);
  fmt::print("\n");
}

void JsonReport::started(const StartReport& start) {
  OrderedJson json = {
      {"event", "start"}, {"job", job_.name}, {"model", job_.model_kind}, {"seed", job_.seed}};
  json["hosts"] = job_.strategy.hosts;
  json["replicas"] = job_.strategy.replicas;
  json["threads"] = start.threads;
  json["training_samples"] = start.training;
  json[start.measured_part + "_samples"] = start.measured;
  for (const StartReport::Ids& ids : start.ids) {
    json["ids"][ids.name] = {
        {"keys", ids.keys}, {"rows", ids.rows}, {"without_record", ids.without_record}};
  }
  json["left_out"] = start.left_out;
  for (const Baseline& baseline : start.baselines) {
    json["baselines"][baseline.name] = measures_json(select(baseline.measures, job_.metrics));
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
  OrderedJson json = {
      {"event", "epoch"}, {"epoch", epoch.epoch}, {"learning_rate", epoch.learning_rate}};
  json["training"] = measures_json({epoch.training});
  if (!epoch.validation.empty()) json["validation"] = measures_json(epoch.validation);
  if (job_.schedule.patience > 0) json["best"] = epoch.best;
  json["seconds"] = epoch.seconds;
  json["samples_per_second"] = epoch.samples_per_second;
  print(json);
}

void JsonReport::saved(const jobs::SaveReport& report) {
  print({{"event", "saved"},
         {"step", report.step},
         {"directory", report.directory.string()},
         {"seconds", report.seconds}});
}

void JsonReport::finished(const TrainReport& report) {
  OrderedJson json = {{"event", "done"},
                      {report.measured_part, measures_json(report.measures)},
                      {"digest", report.digest}};
  json["steps"] = report.steps;
  if (report.best_epoch > 0) json["best_epoch"] = report.best_epoch;
  json["seconds"] = report.seconds;
  json["seconds_in"] = {{"fill", report.fill_seconds},
                        {"engine", report.engine_seconds},
                        {"gradients", report.gradient_seconds}};
  json["samples_per_second"] = report.samples_per_second;
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  print(json);
}

void JsonReport::interrupted(const TrainReport& report, const Interruption& how) {
  OrderedJson json = {{"event", "interrupted"}, {"signal", how.signal}, {"steps", report.steps}};
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  if (!how.resume.empty()) json["resume"] = how.resume;
  print(json);
}

}  // namespace embertable::tools
