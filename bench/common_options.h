#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/training/run_load.h"

namespace embertable::bench {

/// Options that several commands take, before or after the command's name.
struct CommonOptions {
  std::vector<std::string> workloads;  ///< in this order; empty: all
  std::optional<int> threads;          ///< unset: the command's own default
  std::optional<int> repetitions;      ///< unset: the command's own default
  bool json = false;
  std::int64_t rows = 0;     ///< see BenchOptions
  std::int32_t batches = 0;  ///< see BenchOptions
  std::string row_type = "float32";

  int threads_or_all() const;
  std::vector<std::string> workloads_or_all() const;
  BenchOptions of_workloads() const;
};

/// Adds common options to a command, each with its default in the help.
class CommonAdder {
 public:
  /// Borrows both.
  CommonAdder(CLI::App& command, CommonOptions& options) : command_(command), options_(options) {}

  CommonAdder& workloads(const std::string& usual = "all");
  CommonAdder& threads(const std::string& usual = {});  ///< "": all of the machine
  CommonAdder& repetitions(int usual);
  CommonAdder& json();
  CommonAdder& rows(const std::string& usual);
  CommonAdder& batches(const std::string& usual);
  CommonAdder& row_type();

  const std::vector<std::string>& names() const { return names_; }

 private:
  void keep(CLI::Option* option, const std::string& usual);

  CLI::App& command_;
  CommonOptions& options_;
  std::vector<std::string> names_;
};

/// Throws CLI::ParseError naming an option of the program that was given but is not in the
/// command's `common`.
void refuse_others(const CLI::App& program, const CLI::App& command,
                   const std::vector<std::string>& common);

}  // namespace embertable::bench
