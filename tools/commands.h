#pragma once

#include <CLI/CLI.hpp>

namespace embertable::tools {

// Each adds a subcommand, which runs when its arguments are read. Errors leave as exceptions.
void add_train(CLI::App& app);
void add_digest(CLI::App& app);
void add_neighbors(CLI::App& app);
void add_compare(CLI::App& app);

}  // namespace embertable::tools
