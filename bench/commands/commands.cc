#include "bench/commands/commands.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "bench/loads/standard_loads.h"

namespace embertable::bench {

template <class T>
CommonAdder& CommonAdder::add(const std::string& name, T& value, const std::string& text,
                              const CLI::Validator& check, const std::string& usual) {
  names_.push_back(name);
  command_.add_option(name, value, text)->check(check)->default_str(usual);
  return *this;
}

CommonAdder& CommonAdder::workloads(const std::string& usual) {
  std::vector<std::string> known;
  for (const Load& load : standard_loads()) known.push_back(load.name);
  return add("--workload", options_.workloads, "Workloads to run, in this order",
             CLI::IsMember(known), usual);
}

CommonAdder& CommonAdder::threads(const std::string& several) {
  const auto all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (several.empty()) usual_threads_ = all;
  return add("--threads", options_.threads, "Threads", CLI::Range(1, 1024),
             several.empty() ? std::to_string(all) : several);
}

CommonAdder& CommonAdder::repetitions(int usual) {
  usual_repetitions_ = usual;
  return add("--repetitions", options_.repetitions, "Passes that count; the median is reported",
             CLI::Range(1, 1000), std::to_string(usual));
}

CommonAdder& CommonAdder::json() {
  names_.emplace_back("--json");
  command_.add_flag("--json", options_.json, "One JSON object a line instead of text");
  return *this;
}

CommonAdder& CommonAdder::rows(const std::string& usual) {
  return add("--rows", options_.rows, "Rows of each table", CLI::Range(std::int64_t{1}, kMostRows),
             usual);
}

CommonAdder& CommonAdder::batches(const std::string& usual) {
  return add("--batches", options_.batches, "Batches of a pass", CLI::Range(1, 100'000), usual);
}

CommonAdder& CommonAdder::all_of_workloads() {
  workloads().threads().repetitions(5).json();
  rows("the workload's, halved until two copies fit into the free memory");
  batches("the workload's");
  return add("--row-type", options_.row_type, "How tables store rows, in the bare loops too",
             CLI::IsMember({"float32", "bfloat16"}), "float32");
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
