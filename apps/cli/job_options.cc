#include "apps/cli/job_options.h"

#include "apps/cli/checks.h"
#include "apps/jobs/run/train.h"

namespace embertable::tools {

CLI::Option* add_data(CLI::App& command, std::string& root) {
  return command
      .add_option("--data", root,
                  "folder that contains the job's files [that of JOB, or ../data beside it]")
      ->check(not_empty());
}

CLI::Option* add_changes(CLI::App& command, std::vector<std::string>& changes,
                         const std::string& help) {
  return command.add_option("--set", changes, help)
      ->allow_extra_args(false)
      ->take_all()
      ->check(key_and_value());
}

std::vector<jobs::Change> changes_of(const std::vector<std::string>& set) {
  std::vector<jobs::Change> changes;
  for (const std::string& change : set) changes.emplace_back(change, "--set " + change);
  return changes;
}

jobs::Change change_by(const std::string& option, const std::string& key,
                       const std::string& value) {
  return {key + "=" + value, option + " " + value};
}

CLI::Option* add_skip_bad(CLI::App& command, jobs::SkipBad& skip_bad) {
  return command
      .add_option_function<std::string>(
          "--skip-bad", [&](const std::string& text) { skip_bad = jobs::SkipBad::parse(text); },
          "broken lines of the data to leave out and count: at most this number, or a share, 1%")
      ->check(accepted_by([](const std::string& text) { jobs::SkipBad::parse(text); }))
      ->default_str("0");
}

CLI::Option* add_threads(CLI::App& command, std::int32_t& threads, const std::string& help) {
  return command.add_option("--threads", threads, help)
      ->check(between(0, 1024))
      ->capture_default_str();
}

}  // namespace embertable::tools
