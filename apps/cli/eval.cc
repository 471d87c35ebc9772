#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/best_epoch.h"
#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/job_options.h"
#include "apps/cli/train_report.h"
#include "apps/jobs/run/evaluate.h"

namespace embertable::tools {
namespace {

struct EvalArguments {
  std::string path;
  std::string part;
  std::string data, skip_bad;
  jobs::EvaluateOptions options;
  bool json = false;
};

void print_json(const jobs::Evaluation& evaluation) {
  nlohmann::ordered_json json = {{"directory", evaluation.directory.string()},
                                 {"skipped", evaluation.skipped},
                                 {"step", evaluation.step},
                                 {"part", to_string(evaluation.part)},
                                 {"samples", evaluation.samples}};
  json.update(measures_json(evaluation.measures));
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const jobs::Evaluation& evaluation) {
  fmt::print("{}: {} {} samples after step {}\n", evaluation.directory.string(), evaluation.samples,
             to_string(evaluation.part), evaluation.step);
  for (const jobs::Measure& measure : evaluation.measures)
    fmt::print("  {:<22} {:>9}\n", measure.name, measured(measure.value));
}

void run(EvalArguments& arguments) {
  static const std::map<std::string, jobs::Part> kParts = {{"test", jobs::Part::kTest},
                                                           {"validation", jobs::Part::kValidation},
                                                           {"training", jobs::Part::kTraining}};
  if (!arguments.data.empty()) arguments.options.data_root = arguments.data;
  if (!arguments.skip_bad.empty())
    arguments.options.skip_bad = jobs::SkipBad::parse(arguments.skip_bad);
  if (!arguments.part.empty()) arguments.options.part = kParts.at(arguments.part);
  const jobs::Evaluation evaluation =
      jobs::evaluate(best_epoch_of(arguments.path), arguments.options);
  arguments.json ? print_json(evaluation) : print_text(evaluation);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto arguments = std::make_shared<EvalArguments>();
  CLI::App* command =
      app.add_subcommand("eval", "Restore a saved run and measure it on a part of its data");
  command->add_option("DIR", arguments->path, kBestEpochIsRead)->required();
  command
      ->add_option("--data", arguments->data,
                   "folder that contains the job's files; default: the one that the run read")
      ->check(not_empty());
  command
      ->add_option("--skip-bad", arguments->skip_bad,
                   "broken lines of the data to leave out, as a number or a share, 1%; default: "
                   "those of the run")
      ->check(accepted_by([](const std::string& text) { jobs::SkipBad::parse(text); }));
  command
      ->add_option("--part", arguments->part,
                   "part to measure; default: the one that the run measured")
      ->check(CLI::IsMember({"test", "validation", "training"}));
  add_threads(*command, arguments->options.threads);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
