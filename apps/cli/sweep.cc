#include "apps/jobs/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/job_options.h"
#include "apps/cli/sweep_report.h"
#include "embertable/errors.h"

namespace embertable::tools {
namespace {

struct SweepArguments {
  std::string job;
  jobs::SweepOptions options;
  std::vector<std::string> changes, grid;
  std::int64_t random = 0;
  std::uint64_t seed = 1;
  bool no_test = false;
  bool json = false;
};

template <class Report>
void sweep_with(const SweepArguments& arguments, Report& report, Invocation& invocation) {
  std::vector<jobs::SweptKey> keys;
  for (const std::string& text : arguments.grid) keys.push_back(jobs::SweptKey::parse(text));
  for (const std::string& change : arguments.changes) {
    const std::string key = change.substr(0, change.find('='));
    for (const jobs::SweptKey& swept : keys) {
      if ((key + ".").starts_with(swept.key + ".") || (swept.key + ".").starts_with(key + "."))
        throw ValueError(fmt::format("--set {}: --grid tries values of {}", change, swept.key));
    }
  }
  const std::vector<jobs::SweepSetting> settings =
      arguments.random > 0 ? jobs::random_settings(keys, arguments.random, arguments.seed)
                           : jobs::grid_of(keys);
  if (std::ssize(settings) < arguments.random)
    print_message(fmt::format("--random asks for {} runs: there are {} different ones",
                              arguments.random, settings.size()));
  Interrupt interrupt;
  jobs::SweepOptions options = arguments.options;
  options.tests_best = !arguments.no_test;
  options.stop = [&] { return interrupt.requested(); };
  interrupt.arm(Notice::kStopsAndSaves);
  const jobs::JobMaker job_with = [&](const std::vector<jobs::Change>& changes) {
    std::vector<jobs::Change> all = changes_of(arguments.changes);
    all.insert(all.end(), changes.begin(), changes.end());
    return jobs::read_job(arguments.job, all);
  };
  const jobs::SweepReport end = jobs::sweep(job_with, settings, options, report);
  if (!end.interrupted) return;
  invocation.exit_code = interrupt.exit_code();
  if (!arguments.json)
    fmt::print("interrupted by {}; resume with\n  {}\n", interrupt.signal_name(),
               resuming(invocation));
}

void run(const SweepArguments& arguments, Invocation& invocation) {
  if (arguments.json) {
    SweepJson report;
    return sweep_with(arguments, report, invocation);
  }
  SweepText report;
  sweep_with(arguments, report, invocation);
}

}  // namespace

void add_sweep(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand(
      "sweep", "Train a job with many settings, and the best of them again for a test");
  jobs::SweepOptions& options = arguments->options;
  options.option_prefix = "--";
  command->add_option("JOB", arguments->job, "job file, described in docs/jobs.md")->required();
  command
      ->add_option("--grid", arguments->grid,
                   "KEY=VALUE,VALUE: values of a key of the job, as model.dim=16,32; may be "
                   "repeated. With --random also KEY=LOW..HIGH")
      ->required()
      ->allow_extra_args(false)
      ->take_all()
      ->check(accepted_by([](const std::string& text) { jobs::SweptKey::parse(text); }));
  command
      ->add_option("--random", arguments->random,
                   "train this number of settings, drawn by chance, instead of all")
      ->check(at_least(1));
  command->add_option("--seed", arguments->seed, "seed of what --random draws")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--out", options.out, "directory of the sweep, new or empty")
      ->required()
      ->check(not_empty());
  CLI::Option* resume =
      command->add_flag("--resume", options.resume,
                        "take the results that --out has, and go on; keys and values may be more");
  command
      ->add_flag("--overwrite", options.overwrite,
                 "remove the sweep in --out once a run of this one has read its data")
      ->excludes(resume);
  command
      ->add_option("--jobs", options.runs_at_once,
                   "most runs side by side; 0: one for each thread, as far as memory suffices")
      ->check(between(0, 1024))
      ->capture_default_str();
  add_threads(*command, options.threads,
              "number of threads of all runs together; 0: one for each CPU");
  add_data(*command, options.data_root);
  add_skip_bad(*command, options.skip_bad);
  add_changes(*command, arguments->changes,
              "KEY=VALUE: sets a key of the job for all runs, as in schedule.epochs=3");
  command->add_flag("--keep-runs", options.keep_runs, "keep the directories of finished runs");
  command->add_flag("--no-test", arguments->no_test,
                    "neither train the best again nor measure the test part");
  command->add_flag("--json", arguments->json, "print one JSON object per line");
  command->callback([arguments, &invocation] { run(*arguments, invocation); });
}

}  // namespace embertable::tools
