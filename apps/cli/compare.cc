#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/job_options.h"
#include "apps/jobs/run/compare_with_plain_loop.h"

namespace embertable::tools {
namespace {

struct CompareArguments {
  std::string job;
  jobs::TrainOptions options;
  std::vector<std::string> changes;
  std::int32_t rounds = 5;
  bool json = false;
};

void run(const CompareArguments& arguments) {
  const jobs::Job job = jobs::read_job(arguments.job, changes_of(arguments.changes));
  const jobs::Comparison rates =
      jobs::compare_with_plain_loop(job, arguments.options, arguments.rounds);
  const double ratio = rates.engine / rates.plain_loop;
  if (arguments.json) {
    const nlohmann::ordered_json json = {
        {"engine", rates.engine}, {"plain_loop", rates.plain_loop}, {"ratio", ratio}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "engine      {:6.2f} million ratings/s\nplain loop  {:6.2f} million ratings/s\nratio       "
        "{:6.2f}\n",
        rates.engine / 1e6, rates.plain_loop / 1e6, ratio);
  }
}

}  // namespace

void add_compare(CLI::App& app) {
  auto arguments = std::make_shared<CompareArguments>();
  CLI::App* command = app.add_subcommand(
      "compare",
      "Time a job's training and a plain loop over the same ratings, each on one thread");
  command->add_option("JOB", arguments->job, "job file")->required();
  add_data(*command, arguments->options.data_root);
  add_changes(*command, arguments->changes, "KEY=VALUE: sets a key of the job");
  command->add_option("--rounds", arguments->rounds, "epochs that each of the two trains")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
