#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace embertable::tools {

/// An option, or an argument without a name of an option, as the help shows it.
struct ArgumentText {
  std::string name;  ///< "--out"; "JOB" of an argument without the name of an option
  std::string description;
  std::string fallback;              ///< the value that it has if it is not given, or ""
  std::vector<std::string> choices;  ///< the only values that it takes, if there are such
  bool takes_value = false;
  bool repeats = false;
  bool required = false;
};

struct CommandText {
  std::string name, description;
  std::vector<ArgumentText> positionals, options;
};

/// Returns the subcommands with their arguments, in the order of the help.
std::vector<CommandText> command_texts(const CLI::App& app);

}  // namespace embertable::tools
