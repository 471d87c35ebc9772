#include "apps/jobs/run/digest.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/best_epoch.h"
#include "apps/cli/commands.h"
#include "apps/jobs/run/best_epoch.h"

namespace embertable::tools {
namespace {

struct DigestArguments {
  std::string path;
  bool json = false;
};

/// Says on stderr where a run has its best epoch. The digest does not depend on it.
void say_where_best_is(const std::string& run) {
  try {
    if (const auto best = jobs::best_of_run(run))
      print_message(
          fmt::format("the digest is of the latest step; that of epoch {}, the best, is in {}",
                      best->epoch, best->run.string()));
  } catch (const std::exception& error) {
    print_message(fmt::format("the best epoch cannot be read: {}", error.what()));
  }
}

void run(const DigestArguments& arguments) {
  const std::vector<std::string> skipped = say_skipped(arguments.path);
  const std::string digest = jobs::saved_digest(arguments.path);
  say_where_best_is(arguments.path);
  const nlohmann::ordered_json json = {{"digest", digest}, {"skipped", skipped}};
  fmt::print("{}\n", arguments.json
                         ? json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                         : digest);
}

}  // namespace

void add_digest(CLI::App& app) {
  auto arguments = std::make_shared<DigestArguments>();
  CLI::App* command = app.add_subcommand("digest",
                                         "Print one hash of everything that was trained: tables, "
                                         "slots and parameters. Equal values give equal hashes");
  command
      ->add_option("DIR", arguments->path,
                   "directory of a run, whose latest step is read, or of a step")
      ->required();
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
