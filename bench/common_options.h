#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/workload_bench.h"

namespace embertable::bench {

/// What several commands take, before the command's name or after.
struct CommonOptions {
  std::vector<std::string> workloads;  ///< in this order; empty: all
  std::optional<int> threads;          ///< unset: as the command has them by itself
  std::optional<int> repetitions;      ///< likewise
  bool json = false;
  std::int64_t rows = 0;     ///< see BenchOptions, as the next
  std::int32_t batches = 0;  ///< of a pass

  int threads_or_all() const;
  std::vector<std::string> workloads_or_all() const;
  BenchOptions of_workloads() const;
};

/// Adds to a command those of the common options that it takes, with what they are by themselves.
class CommonAdder {
 public:
  /// Both are borrowed.
  CommonAdder(CLI::App& command, CommonOptions& options) : command_(command), options_(options) {}

  CommonAdder& workloads();
  CommonAdder& threads(const std::string& usual = {});  ///< "": all of the machine
  CommonAdder& repetitions(int usual);
  CommonAdder& json();
  CommonAdder& rows(const std::string& usual);
  CommonAdder& batches(const std::string& usual);

  const std::vector<std::string>& names() const { return names_; }

 private:
  void keep(CLI::Option* option, const std::string& usual);

  CLI::App& command_;
  CommonOptions& options_;
  std::vector<std::string> names_;
};

/// Throws CLI::ParseError naming an option of the program that was given although the command does
/// not have it among `common`.
void refuse_others(const CLI::App& program, const CLI::App& command,
                   const std::vector<std::string>& common);

}  // namespace embertable::bench
