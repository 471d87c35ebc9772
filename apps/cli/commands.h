#pragma once

#include <CLI/CLI.hpp>
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

/// Returns the command line that goes on with an interrupted run: the same with --resume.
std::string resuming(const Invocation& invocation);

// Each function adds a subcommand, which runs when its arguments are read and throws its errors. A
// subcommand with an invocation may set the exit code, and must not outlive it.
void add_train(CLI::App& app, Invocation& invocation);
void add_sweep(CLI::App& app, Invocation& invocation);
void add_eval(CLI::App& app);
void add_inspect(CLI::App& app);
void add_verify(CLI::App& app, Invocation& invocation);
void add_digest(CLI::App& app);
void add_export(CLI::App& app);
void add_import(CLI::App& app);
void add_init(CLI::App& app);
void add_predict(CLI::App& app);
void add_lookup(CLI::App& app);
void add_neighbors(CLI::App& app);
void add_compare(CLI::App& app);
void add_synth(CLI::App& app);
void add_selftest(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, const Invocation& invocation);
void add_completion(CLI::App& app);
void add_manual(CLI::App& app);

}  // namespace embertable::tools
