#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "base/did_you_mean.h"
#include "embertable/version.h"

namespace {

constexpr int kFailed = 1;
constexpr int kMisused = 2;

/// Returns what is wrong with the first word if it is meant as a command and is none, else "".
std::string refusal(CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1].starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[1]) != names.end()) return "";
  return "the command " + embertable::must_be_one_of(names, words[1]);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Embertable: embedding tables, trained, stored and served", "embertable");
  app.set_version_flag("--version", fmt::format("embertable {}", embertable::kVersion));
  app.require_subcommand(1);
  embertable::tools::Invocation invocation{.words = {argv, argv + argc}};
  embertable::tools::add_train(app, invocation);
  embertable::tools::add_eval(app);
  embertable::tools::add_predict(app);
  embertable::tools::add_lookup(app);
  embertable::tools::add_neighbors(app);
  embertable::tools::add_inspect(app);
  embertable::tools::add_verify(app, invocation);
  embertable::tools::add_digest(app);
  embertable::tools::add_export(app);
  embertable::tools::add_import(app);
  embertable::tools::add_compare(app);
  embertable::tools::add_synth(app);
  embertable::tools::add_selftest(app, invocation);
  if (const std::string wrong = refusal(app, invocation.words); !wrong.empty()) {
    fmt::print(stderr, "embertable: {}\n", wrong);
    return kMisused;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kMisused;
  }
  return invocation.exit_code;
} catch (const std::exception& error) {
  fmt::print(stderr, "embertable: {}\n", error.what());
  return kFailed;
}
