#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embertable/exchange.h"

namespace embertable::tools {

/// The command line of the program and its exit code.
struct Invocation {
  std::vector<std::string> program;  ///< words that start the program
  std::vector<std::string> words;    ///< words behind them: the command and its arguments
  int exit_code = 0;                 ///< exit code of a command that ran

  /// Connects the processes that torchrun started, given seconds after which one is lost. Null
  /// where there is no Python.
  std::function<std::shared_ptr<Exchange>(double)> torch = nullptr;

  /// Returns names and versions of what the program runs in, such as Python. Null where there is
  /// none.
  std::function<std::vector<std::pair<std::string, std::string>>()> packages = nullptr;
};

/// Runs a command and returns the exit code of the process. Prints errors.
int run_command_line(Invocation& invocation);

/// Prints a text on stderr, behind the program's name, if that can be written: there is no better
/// place to say that it cannot.
void print_message(const std::string& text) noexcept;

/// Returns the command line that goes on with an interrupted run: the same with --resume.
std::string resuming(const Invocation& invocation);

}  // namespace embertable::tools
