#include "apps/jobs/run/predict.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "apps/cli/best_epoch.h"
#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/job_options.h"
#include "apps/cli/numbers.h"
#include "apps/convert/printable.h"
#include "apps/jobs/run/score_writer.h"
#include "embertable/errors.h"

namespace embertable::tools {
namespace {

struct PredictArguments {
  std::string path;
  std::string output;
  jobs::PredictOptions options;
  std::int64_t items = 0;
  bool no_label = false;
  bool no_ids = false;
  bool json = false;
};

void print_json(const jobs::Prediction& done, std::FILE* to) {
  nlohmann::ordered_json json = {{"directory", done.directory.string()},
                                 {"skipped", done.skipped},
                                 {"step", done.step},
                                 {"job", done.job},
                                 {"model", done.model},
                                 {"rows", done.counts.rows},
                                 {"left_out", done.counts.left_out},
                                 {"rows_with_unseen", done.counts.with_unseen}};
  json["unseen"] = done.counts.unseen;
  if (!done.counts.absent.empty()) json["absent_columns"] = done.counts.absent;
  json["seconds"] = done.seconds;
  json["rows_per_second"] = done.rows_per_second();
  fmt::print(to, "{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const jobs::Prediction& done, std::FILE* to) {
  fmt::print(to, "{}: {} scored after step {} in {:.2f} s, {:.0f} rows/s\n",
             done.directory.string(), counted(done.counts.rows, "row"), grouped(done.step),
             done.seconds, done.rows_per_second());
  if (done.counts.left_out > 0)
    fmt::print(to, "  {} left out\n", counted(done.counts.left_out, "broken line"));
  for (const std::string& column : done.counts.absent)
    fmt::print(to,
               "  no column '{}': users have no items by it, its rule leaves no row out, or the "
               "order of the rows counts\n",
               jobs::printable(column));
  if (done.counts.with_unseen == 0) return;
  fmt::print(
      to, "  {} with keys that have no row of their own:", counted(done.counts.with_unseen, "row"));
  const char* between = " ";
  for (const auto& [ids, keys] : done.counts.unseen) {
    if (keys == 0) continue;
    fmt::print(to, "{}{} of '{}'", between, grouped(keys), jobs::printable(ids));
    between = ", ";
  }
  fmt::print(to, "\n");
}

void run(PredictArguments& arguments) {
  jobs::NewRows& rows = arguments.options.rows;
  if (rows.path == "-") rows.path = "/dev/stdin";
  std::error_code none;
  if (std::filesystem::is_regular_file(arguments.output, none) &&
      std::filesystem::equivalent(arguments.output, rows.path, none))
    throw ValueError(fmt::format("--output must not be the rows, got '{}'", arguments.output));
  rows.names = {.no_label = "--no-label", .copy = "--copy", .no_ids = "--no-ids"};
  rows.has_label = !arguments.no_label;
  rows.copy_ids = !arguments.no_ids;
  if (arguments.items > 0) rows.items = arguments.items;
  const bool to_file = !jobs::ResultFile::is_standard_output(arguments.output);
  jobs::ScoreWriter writer(arguments.output, arguments.json && !to_file
                                                 ? jobs::ScoreWriter::Format::kJson
                                                 : jobs::ScoreWriter::Format::kCsv);
  const jobs::Prediction done =
      jobs::predict(best_epoch_of(arguments.path), arguments.options, writer);
  writer.finish();
  std::FILE* const report = to_file ? stdout : stderr;
  arguments.json ? print_json(done, report) : print_text(done, report);
}

}  // namespace

void add_predict(CLI::App& app) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command =
      app.add_subcommand("predict", "Score new rows with a saved run, without the run's data");
  command->add_option("DIR", arguments->path, kBestEpochIsRead)->required();
  jobs::NewRows& rows = arguments->options.rows;
  command
      ->add_option("FILE", rows.path,
                   "rows in the format of the job's data, plain or compressed; -: standard input")
      ->required();
  command
      ->add_option("--output", arguments->output,
                   "write the scores to this CSV file instead of printing them")
      ->check(not_empty());
  command
      ->add_option("--k", arguments->items,
                   fmt::format("number of items for each user, if the model ranks items [{}]; mf "
                               "ranks them if this is given",
                               jobs::NewRows::kItems))
      ->check(between(1, jobs::NewRows::kMostItems));
  command->add_flag("--no-label", arguments->no_label,
                    "FILE has no header and lacks the label's column");
  command
      ->add_option("--copy", rows.copy,
                   "columns of FILE to give beside the scores of records, by name or number, with "
                   "commas between them")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--no-ids", arguments->no_ids,
                    "do not give the columns of the job's ids beside the scores of records");
  add_skip_bad(*command, arguments->options.rows.skip_bad);
  add_threads(*command, arguments->options.threads);
  command->add_flag("--json", arguments->json,
                    "print one JSON object per line: the scores, then the report");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
