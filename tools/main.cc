#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "embertable/version.h"
#include "tools/commands.h"

namespace {

constexpr int kFailed = 1;
constexpr int kMisused = 2;

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Embertable: embedding tables, trained, stored and served", "embertable");
  app.set_version_flag("--version", fmt::format("embertable {}", embertable::kVersion));
  app.require_subcommand(1);
  embertable::tools::add_train(app);
  embertable::tools::add_digest(app);
  embertable::tools::add_neighbors(app);
  embertable::tools::add_compare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kMisused;
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "embertable: {}\n", error.what());
  return kFailed;
}
