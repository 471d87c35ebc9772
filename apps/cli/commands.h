#pragma once

#include <CLI/CLI.hpp>

#include "apps/cli/command_line.h"

namespace embertable::tools {

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
