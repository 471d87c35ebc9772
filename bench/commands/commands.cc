#include "bench/commands/commands.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "bench/loads/standard_loads.h"

namespace embertable::bench {

void CommonAdder::keep(CLI::Option* option, const std::string& usual) {
  names_.push_back(option->get_name());
  if (!usual.empty()) option->default_str(usual);
}

CommonAdder& CommonAdder::workloads(const std::string& usual) {
  std::vector<std::string> known;
  for (const Load& load : standard_loads()) known.push_back(load.name);
  CLI::Option* option =
      command_.add_option("--workload", options_.workloads, "Workloads to run, in this order");
  keep(option->check(CLI::IsMember(known)), usual);
  return *this;
}

CommonAdder& CommonAdder::threads(const std::string& several) {
  const auto all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (several.empty()) usual_threads_ = all;
  CLI::Option* option = command_.add_option("--threads", options_.threads, "Threads");
  keep(option->check(CLI::Range(1, 1024)), several.empty() ? std::to_string(all) : several);
  return *this;
}

CommonAdder& CommonAdder::repetitions(int usual) {
  usual_repetitions_ = usual;
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

CommonAdder& CommonAdder::all_of_workloads() {
  workloads().threads().repetitions(5).json();
  rows("the workload's, halved until two copies fit into the free memory");
  batches("the workload's");
  CLI::Option* option = command_.add_option("--row-type", options_.row_type,
                                            "How tables store rows, in the bare loops too");
  keep(option->check(CLI::IsMember({"float32", "bfloat16"})), "float32");
  return *this;
}

Command CommonAdder::runs(std::function<void()> run) {
  return {&command_, names_,
          [&options = options_, threads = usual_threads_, repetitions = usual_repetitions_,
           run = std::move(run)] {
            if (options.threads == 0) options.threads = threads;
            if (options.repetitions == 0) options.repetitions = repetitions;
            run();
          }};
}

}  // namespace embertable::bench
