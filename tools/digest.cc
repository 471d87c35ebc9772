#include <fmt/format.h>

#include <memory>
#include <string>

#include "embertable/checkpoint.h"
#include "tools/commands.h"

namespace embertable::tools {

void add_digest(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "digest", "Print one hash of all tables and slots of a checkpoint: equal for equal values");
  command
      ->add_option("DIR", *path,
                   "a run's directory, of which the latest step is taken, or a step's")
      ->required();
  command->callback([path] { fmt::print("{}\n", digest_checkpoint(*path)); });
}

}  // namespace embertable::tools
