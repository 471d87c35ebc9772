#include "apps/cli/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/numbers.h"
#include "apps/cli/train_report.h"
#include "apps/convert/printable.h"

namespace embertable::tools {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson setting_json(const jobs::SweepSetting& setting) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, value] : setting) json[key] = value;
  return json;
}

OrderedJson run_json(const jobs::SweptRun& run) {
  OrderedJson json = {{"number", run.number}, {"set", setting_json(run.setting)}};
  if (!run.warnings.empty()) json["warnings"] = run.warnings;
  if (!run.error.empty()) {
    json["error"] = run.error;
    return json;
  }
  json["validation"] = measures_json(run.measures);
  json["epoch"] = run.epoch;
  json["seconds"] = run.seconds;
  json["digest"] = run.digest;
  return json;
}

/// Prints a table whose columns are as wide as their widest text, to the right.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) fmt::print("{:>{}}", row[i], widths[i] + 2);
    fmt::print("\n");
  }
}

}  // namespace

std::string text_of(const jobs::SweepSetting& setting) {
  std::string text;
  for (const auto& [key, value] : setting)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, value);
  return jobs::printable(text);
}

void SweepText::started(const jobs::Job& job, std::int64_t runs, std::int64_t finished) {
  metrics_ = job.metrics;
  runs_ = runs;
  fmt::print("sweep of {}: {}, the best by validation {}", job.name, counted(runs, "run"),
             metrics_.front());
  if (finished > 0) fmt::print("; {} of them done before", finished);
  fmt::print("\n");
  std::fflush(stdout);
}

void SweepText::chose(std::int64_t at_once, std::int32_t threads) {
  fmt::print("{} at once, {} each\n", counted(at_once, "run"), counted(threads, "thread"));
  std::fflush(stdout);
}

void SweepText::ran(const jobs::SweptRun& run) {
  ++ran_;
  fmt::print("  {:>{}}/{}  {}", ran_, std::to_string(runs_).size(), runs_, text_of(run.setting));
  if (!run.error.empty()) {
    fmt::print("  {}\n", jobs::printable(run.error));
  } else {
    for (const jobs::Measure& measure : run.measures)
      fmt::print("  {} {}", measure.name, measured(measure.value));
    fmt::print("  epoch {}  {:.1f} s\n", run.epoch, run.seconds);
  }
  for (const std::string& warning : run.warnings) {
    if (warned_.insert(warning).second) fmt::print("    warning: {}\n", jobs::printable(warning));
  }
  std::fflush(stdout);
}

void SweepText::ranked(const jobs::Job& /*job*/, const std::vector<jobs::SweptRun>& runs) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [key, value] : runs.front().setting) rows[0].push_back(key);
  for (const std::string& metric : metrics_) rows[0].push_back(metric);
  rows[0].insert(rows[0].end(), {"epoch", "seconds"});
  for (const jobs::SweptRun& run : runs) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const auto& [key, value] : run.setting) row.push_back(jobs::printable(value));
    for (const std::string& metric : metrics_)
      row.push_back(run.error.empty() ? measured(value_of(run.measures, metric)) : "error");
    row.push_back(run.error.empty() ? std::to_string(run.epoch) : "");
    row.push_back(run.error.empty() ? fmt::format("{:.1f}", run.seconds) : "");
  }
  print_table(rows);
  fmt::print("best: {}\n", text_of(runs.front().setting));
  std::fflush(stdout);
}

void SweepText::tested(const jobs::BestRun& best) {
  fmt::print("trained again with the validation part, for {}\n",
             counted(best.job.schedule.epochs, "epoch"));
  for (const jobs::Measure& measure : best.report.measures)
    fmt::print("  {} {} {}\n", best.report.measured_part, measure.name, measured(measure.value));
  fmt::print("digest {}\nsaved in {}\n", best.report.digest, best.report.saved.string());
  if (!best.job.model->scores_rows()) return;
  fmt::print("next:\n  embertable predict {} FILE   # scores the rows of FILE\n",
             shell_word(best.report.saved.parent_path().string()));
}

void SweepJson::tell(const OrderedJson& json) const {
  const std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (tell_) return tell_(text);
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void SweepJson::started(const jobs::Job& job, std::int64_t runs, std::int64_t finished) {
  tell({{"event", "start"},
        {"job", job.name},
        {"model", job.model_kind},
        {"metric", job.metrics.front()},
        {"runs", runs},
        {"finished", finished}});
}

void SweepJson::chose(std::int64_t at_once, std::int32_t threads) {
  tell({{"event", "side_by_side"}, {"runs", at_once}, {"threads", threads}});
}

void SweepJson::ran(const jobs::SweptRun& run) {
  OrderedJson json = {{"event", "run"}};
  json.update(run_json(run));
  tell(json);
}

void SweepJson::ranked(const jobs::Job& /*job*/, const std::vector<jobs::SweptRun>& runs) {
  OrderedJson json = {{"event", "ranked"}, {"runs", OrderedJson::array()}};
  for (const jobs::SweptRun& run : runs) json["runs"].push_back(run_json(run));
  tell(json);
}

void SweepJson::tested(const jobs::BestRun& best) {
  OrderedJson json = {{"event", "done"}, {"epochs", best.job.schedule.epochs}};
  json[best.report.measured_part] = measures_json(best.report.measures);
  json["digest"] = best.report.digest;
  json["saved"] = best.report.saved.string();
  tell(json);
}

}  // namespace embertable::tools
