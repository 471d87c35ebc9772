#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace embertable::bench {

/// The most rows of a table that an option takes.
inline constexpr std::int64_t kMostRows = std::int64_t{1} << 31;

/// Adds an option of one command alone: a number of low..high, whose default is what it holds.
template <class Number>
CLI::Option* add_number(CLI::App& command, const std::string& name, Number& value,
                        const std::string& text, std::type_identity_t<Number> low,
                        std::type_identity_t<Number> high) {
  return command.add_option(name, value, text)->check(CLI::Range(low, high))->capture_default_str();
}

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
  /// Adds an option whose default is `usual` in words.
  template <class T>
  CommonAdder& add(const std::string& name, T& value, const std::string& text,
                   const CLI::Validator& check, const std::string& usual);

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
