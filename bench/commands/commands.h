#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace embertable::bench {

/// Options that several commands take, before or after the command's name.
struct CommonOptions {
  std::vector<std::string> workloads;  ///< in this order; empty: all
  int threads = 0;                     ///< 0: all of the machine; `sweep`: 1 and 2
  int repetitions = 0;                 ///< 0 until a command runs, which has a default of its own
  bool json = false;
  std::int64_t rows = 0;     ///< rows of each table; 0: the workload's, halved until they fit
  std::int32_t batches = 0;  ///< batches of a pass; 0: the workload's
  std::string row_type = "float32";  ///< storage of the rows, in the bare loops too
};

/// A subcommand of embertable-bench, or the program without one.
struct Command {
  CLI::App* app;
  std::vector<std::string> common;  ///< names of the options that it shares with others
  std::function<void()> run;
};

/// Adds common options to a command, each with its default in the help.
class CommonAdder {
 public:
  /// Borrows both.
  CommonAdder(CLI::App& command, CommonOptions& options) : command_(command), options_(options) {}

  CommonAdder& workloads(const std::string& usual = "all");
  CommonAdder& threads(const std::string& several = {});  ///< "": one default, all of the machine
  CommonAdder& repetitions(int usual);
  CommonAdder& json();
  CommonAdder& rows(const std::string& usual);
  CommonAdder& batches(const std::string& usual);

  /// Adds the options for a run of standard workloads.
  CommonAdder& all_of_workloads();

  /// Returns the command, which gives options their defaults before it runs.
  Command runs(std::function<void()> run);

 private:
  void keep(CLI::Option* option, const std::string& usual);

  CLI::App& command_;
  CommonOptions& options_;
  std::vector<std::string> names_;
  int usual_threads_ = 0, usual_repetitions_ = 0;
};

// Each adds a subcommand, in the file of its name. `app` and `common` must outlive the command.
Command add_checkpoint(CLI::App& app, CommonOptions& common);
Command add_hosts(CLI::App& app, CommonOptions& common);
Command add_hot(CLI::App& app, CommonOptions& common);
Command add_optimizers(CLI::App& app, CommonOptions& common);
Command add_reader(CLI::App& app, CommonOptions& common);
Command add_serving(CLI::App& app, CommonOptions& common);
Command add_sharded(CLI::App& app, CommonOptions& common);
Command add_small(CLI::App& app, CommonOptions& common);
Command add_stages(CLI::App& app, CommonOptions& common);
Command add_sweep(CLI::App& app, CommonOptions& common);

}  // namespace embertable::bench
