#include "bench/common_options.h"

#include <algorithm>
#include <thread>

#include "bench/loads/standard_loads.h"

namespace embertable::bench {
namespace {

std::vector<std::string> known_workloads() {
  std::vector<std::string> names;
  for (const Load& load : standard_loads()) names.push_back(load.name);
  return names;
}

int threads_of_machine() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

int CommonOptions::threads_or_all() const { return threads.value_or(threads_of_machine()); }

std::vector<std::string> CommonOptions::workloads_or_all() const {
  return workloads.empty() ? known_workloads() : workloads;
}

BenchOptions CommonOptions::of_workloads() const {
  return {threads_or_all(), repetitions.value_or(BenchOptions().repetitions), rows, batches,
          parse_row_type(row_type)};
}

void CommonAdder::keep(CLI::Option* option, const std::string& usual) {
  names_.push_back(option->get_name());
  if (!usual.empty()) option->default_str(usual);
}

CommonAdder& CommonAdder::workloads(const std::string& usual) {
  CLI::Option* option =
      command_.add_option("--workload", options_.workloads, "Workloads to run, in this order");
  keep(option->check(CLI::IsMember(known_workloads())), usual);
  return *this;
}

CommonAdder& CommonAdder::threads(const std::string& usual) {
  CLI::Option* option = command_.add_option("--threads", options_.threads, "Threads");
  keep(option->check(CLI::Range(1, 1024)),
       usual.empty() ? std::to_string(threads_of_machine()) : usual);
  return *this;
}

CommonAdder& CommonAdder::repetitions(int usual) {
  CLI::Option* option = command_.add_option("--repetitions", options_.repetitions,
                                            "Passes that count; the median is reported");
  keep(option->check(CLI::Range(1, 1000)), std::to_string(usual));
  return *this;
}

CommonAdder& CommonAdder::json() {
  keep(command_.add_flag("--json", options_.json, "One JSON object a line instead of text"), "");
  return *this;
}

CommonAdder& CommonAdder::rows(const std::string& usual) {
  CLI::Option* option = command_.add_option("--rows", options_.rows, "Rows of each table");
  keep(option->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31)), usual);
  return *this;
}

CommonAdder& CommonAdder::batches(const std::string& usual) {
  CLI::Option* option = command_.add_option("--batches", options_.batches, "Batches of a pass");
  keep(option->check(CLI::Range(1, 100'000)), usual);
  return *this;
}

CommonAdder& CommonAdder::row_type() {
  CLI::Option* option = command_.add_option("--row-type", options_.row_type,
                                            "How tables store rows, in the bare loops too");
  keep(option->check(CLI::IsMember({"float32", "bfloat16"})), "float32");
  return *this;
}

void refuse_others(const CLI::App& program, const CLI::App& command,
                   const std::vector<std::string>& common) {
  for (const CLI::Option* option : program.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || std::ranges::find(common, name) != common.end()) continue;
    const bool other = command.get_option_no_throw(name) != nullptr;
    throw CLI::ValidationError(name, (other ? "it must stand after '" : "it is no option of '") +
                                         command.get_name() + "'");
  }
}

}  // namespace embertable::bench
