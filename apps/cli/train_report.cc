#include "apps/cli/train_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/convert/printable.h"

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

void clear_line() { fmt::print("\r{:100}\r", ""); }

}  // namespace

nlohmann::ordered_json measures_json(const jobs::Measures& measures) {
  OrderedJson json = OrderedJson::object();
  for (const Measure& measure : measures) json[measure.name] = measure.value;
  return json;
}

std::string measured(double value) {
  return std::isnan(value) ? "none" : fmt::format("{:.4f}", value);
}

// A launcher shows its processes a terminal of its own, in which a bar does not move.
TextReport::TextReport(const jobs::Job& job, const jobs::TrainOptions& options)
    : job_(job), options_(options), terminal_(!options.exchange && isatty(STDOUT_FILENO) != 0) {}

void TextReport::started(const StartReport& start) {
  remarks_.started(start);
  print_origin(start);
  for (const std::string& note : job_.notes) fmt::print("{}\n", note);
  for (const std::string& warning : start.warnings)
    fmt::print("warning: {}\n", jobs::printable(warning));
  fmt::print("{}: {} training samples, {} {} samples to measure, read in {:.2f} s\n", job_.name,
             start.training, start.measured, start.measured_part, start.read_seconds);
  print_left_out(start.left_out);
  for (const StartReport::Ids& ids : start.ids) {
    first_keys_[ids.name] = ids.first;
    if (ids.keys == 0 && ids.rows == 1) {
      fmt::print("  {:<22} no key has a row alone: all share one", ids.name);
    } else if (ids.keys == 0 && ids.rows > 0) {
      fmt::print("  {:<22} hashed into {} rows", ids.name, ids.rows);
    } else {
      fmt::print("  {:<22} {:>9} keys", ids.name, ids.keys);
    }
    if (ids.without_record > 0)
      fmt::print(" ({} lists are empty: the side table lacks their keys)", ids.without_record);
    fmt::print("\n");
    if (ids.empty > 0) {
      fmt::print(
          "    {} record{} an empty {}, which counts as a key like any other; data.where "
          "can leave them out\n",
          ids.empty, ids.empty == 1 ? " has" : "s have", ids.name);
    }
  }
  if (start.repeated_pairs > 0) {
    fmt::print("  {} of the {} {} samples repeat a pair that trains: the same user and item\n",
               start.repeated_pairs, start.measured, start.measured_part);
  }
  fmt::print("{:<24}", start.measured_part);
  for (const std::string& metric : job_.metrics) fmt::print(" {:>9}", metric);
  fmt::print("\n");
  for (const Baseline& baseline : start.baselines)
    print_measures(baseline.name, select(baseline.measures, job_.metrics));
  std::fflush(stdout);
}

/// Prints how many records were left out, and why.
void TextReport::print_left_out(const jobs::LeftOut& left_out) {
  const std::int64_t total = left_out.total();
  if (total == 0) return;
  fmt::print("  {} broken record{} left out\n", total, total == 1 ? " is" : "s are");
  for (const jobs::LeftOut::Reason& reason : left_out.reasons) {
    fmt::print("  {:>9}: {}; the first is {}\n", reason.count, jobs::printable(reason.rule),
               jobs::printable(reason.first));
  }
}

/// Prints where a run that is to be resumed goes on.
void TextReport::print_origin(const StartReport& start) const {
  if (!options_.resume) return;
  if (!start.resumed) {
    fmt::print("nothing is saved in {} yet: starts anew\n", options_.out);
    return;
  }
  const StartReport::Resumed& from = *start.resumed;
  for (const std::string& why : from.skipped)
    fmt::print("skipped and set aside: {}\n", jobs::printable(why));
  if (from.epochs >= job_.schedule.epochs) {
    fmt::print("{} holds the finished run: nothing is left to train\n", from.directory.string());
  } else {
    fmt::print("resumes from {}: step {}, {} of {} epochs and {} samples are done\n",
               from.directory.string(), from.step, from.epochs, job_.schedule.epochs, from.samples);
  }
}

void TextReport::stepped(const StepReport& step) {
  if (!terminal_ || step.seconds < next_bar_) return;
  next_bar_ = step.seconds + kSecondsPerRedraw;
  const double rate = static_cast<double>(step.trained) / step.seconds;
  fmt::print("\r  epoch {:>3}/{} [{}] {} {:.4f}  {:.2f} M samples/s  {} left ", step.epoch,
             job_.schedule.epochs, progress_bar(step.share), step.training.name,
             step.training.value, rate / 1e6,
             minutes(step.seconds * (1 - step.share) / step.share));
  std::fflush(stdout);
}

void TextReport::finished_epoch(const EpochReport& epoch) {
  remarks_.finished_epoch(epoch);
  if (terminal_) {
    if (epoch.epoch == job_.schedule.epochs) clear_line();
    if (epoch.validation.empty()) return;
    clear_line();
  }
  fmt::print("  epoch {:>3}/{}  rate {:.5f}  training {} {:.4f}", epoch.epoch, job_.schedule.epochs,
             epoch.learning_rate, epoch.training.name, epoch.training.value);
  for (const Measure& measure : epoch.validation)
    fmt::print("  validation {} {}", measure.name, measured(measure.value));
  fmt::print("  {:.2f} M samples/s{}\n", epoch.samples_per_second / 1e6,
             epoch.best ? "  best" : "");
  std::fflush(stdout);
}

void TextReport::saving(std::int64_t step) { save_.emplace(fmt::format("saving step {}", step)); }

void TextReport::saved(const jobs::SaveReport& /*report*/) { save_.reset(); }

void TextReport::finished(const TrainReport& report) {
  if (report.best_epoch > 0) fmt::print("the tables are those after epoch {}\n", report.best_epoch);
  std::int32_t dim = 0;
  for (const jobs::TableSpec& table : job_.tables) dim = std::max(dim, table.dim);
  print_measures(fmt::format("{}, dim {}", job_.model_kind, dim), report.measures);
  fmt::print("{} steps in {:.2f} s: {:.2f} million samples/s\n", report.steps, report.seconds,
             report.samples_per_second / 1e6);
  if (const std::vector<double>& waited = report.waited_seconds; !waited.empty()) {
    const std::int32_t slowest = report.slowest_host();
    fmt::print(
        "{} hosts: host {} is the slowest; it waited {:.2f} s for the others, they up to "
        "{:.2f} s\n",
        waited.size(), slowest, waited[slowest], *std::max_element(waited.begin(), waited.end()));
  }
  remarks_.finished(report);
  for (const std::string& sentence : remarks_.sentences()) fmt::print("{}\n", sentence);
  fmt::print("digest {}\n", report.digest);
  if (report.saved.empty()) return;
  fmt::print("saved in {}\n", report.saved.string());
  print_next();
}

/// Prints commands that use the run.
void TextReport::print_next() {
  const std::string run = shell_word(options_.out);
  std::string lines;
  if (job_.model->scores_rows())
    lines += fmt::format("  embertable predict {} FILE   # scores the rows of FILE\n", run);
  const std::string name = job_.model->compared_table();
  const auto table = std::find_if(job_.tables.begin(), job_.tables.end(),
                                  [&](const jobs::TableSpec& one) { return one.name == name; });
  const std::string key = table == job_.tables.end() ? "" : first_keys_[table->ids];
  if (job_.model->ranks_if_asked(job_) && !key.empty()) {  // hashed items are not ranked
    lines += fmt::format(
        "  embertable predict {} FILE --k 10   # ranks items for the users of FILE\n", run);
  }
  if (!key.empty() && table->dim >= 2 && jobs::printable(key) == key) {
    lines += fmt::format("  embertable neighbors {} --table {} --key{}{}\n", run, shell_word(name),
                         key[0] == '-' ? '=' : ' ', shell_word(key));
  }
  if (!lines.empty()) fmt::print("next:\n{}", lines);
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
  for (const Measure& measure : measures) fmt::print(" {:>9}", measured(measure.value));
  fmt::print("\n");
}

void JsonReport::tell(const OrderedJson& json) const {
  const std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (tell_) return tell_(text);
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void JsonReport::started(const StartReport& start) {
  OrderedJson json = {
      {"event", "start"}, {"job", job_.name}, {"model", job_.model_kind}, {"seed", job_.seed}};
  json["hosts"] = start.job.strategy.hosts;
  json["replicas"] = job_.strategy.replicas;
  json["threads"] = start.threads;
  json["training_samples"] = start.training;
  json[start.measured_part + "_samples"] = start.measured;
  for (const StartReport::Ids& ids : start.ids) {
    json["ids"][ids.name] = {{"keys", ids.keys},
                             {"rows", ids.rows},
                             {"without_record", ids.without_record},
                             {"empty", ids.empty}};
  }
  if (!job_.notes.empty()) json["note"] = fmt::format("{}", fmt::join(job_.notes, "; "));
  if (!start.warnings.empty()) json["warnings"] = start.warnings;
  json["left_out"] = start.left_out.total();
  for (const jobs::LeftOut::Reason& reason : start.left_out.reasons) {
    json["broken"].push_back(
        {{"rule", reason.rule}, {"count", reason.count}, {"first", reason.first}});
  }
  json["repeated_pairs"] = start.repeated_pairs;
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
  tell(json);
}

void JsonReport::finished_epoch(const EpochReport& epoch) {
  OrderedJson json = {
      {"event", "epoch"}, {"epoch", epoch.epoch}, {"learning_rate", epoch.learning_rate}};
  json["training"] = measures_json({epoch.training});
  if (!epoch.validation.empty()) json["validation"] = measures_json(epoch.validation);
  if (job_.schedule.patience > 0) json["best"] = epoch.best;
  json["seconds"] = epoch.seconds;
  json["samples_per_second"] = epoch.samples_per_second;
  tell(json);
}

void JsonReport::saved(const jobs::SaveReport& report) {
  tell({{"event", "saved"},
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
  if (!report.waited_seconds.empty()) {
    json["slowest_host"] = report.slowest_host();
    json["waited_seconds"] = report.waited_seconds;
  }
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  tell(json);
}

void JsonReport::interrupted(const TrainReport& report, const Interruption& how) {
  OrderedJson json = {{"event", "interrupted"}, {"signal", how.signal}, {"steps", report.steps}};
  if (!report.saved.empty()) json["saved"] = report.saved.string();
  if (!how.resume.empty()) json["resume"] = how.resume;
  tell(json);
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace embertable::tools
