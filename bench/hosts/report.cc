#include <fmt/format.h>
#include <sched.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "bench/hosts/run_hosts.h"
#include "bench/machine/machine.h"

namespace embertable::bench {
namespace {

std::string described(std::string_view lane, std::int32_t hosts) {
  if (lane == "mpi") return fmt::format("{} ranks x 1 thread, MPI", hosts);
  if (lane == "threads") return fmt::format("{} hosts x 1 thread, threads", hosts);
  return fmt::format("1 host x {} threads", hosts);
}

/// Returns the number of processors that this process may run on.
int usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  return CPU_COUNT(&usable);
}

std::string messages(const HostsResult& result) {
  const auto lookups = static_cast<double>(result.lookups);
  if (result.bytes == 0)
    return fmt::format("  smallest possible messages: {:.1f} bytes a lookup\n",
                       result.smallest_bytes);
  const double all = result.bytes * lookups;
  return fmt::format(
      "  messages to other hosts: {:.1f} bytes a lookup; the smallest possible: {:.1f} ({:.3f} of "
      "it)\n"
      "  the same messages alone: {:.2f} GB/s, {:.2f} ns a lookup, {:.2f} of the step; transport: "
      "{}\n"
      "  while rank 0 worked alone, another took at most {:.1f} % of a processor\n",
      result.bytes, result.smallest_bytes, result.bytes / result.smallest_bytes,
      all / result.message_seconds * 1e-9, result.message_seconds / lookups * 1e9,
      result.message_seconds / result.lanes.front().seconds.step, result.transport,
      result.waiting * 100);
}

}  // namespace

std::string to_text(const HostsResult& result) {
  const Load& load = result.load;
  const LoadTable& table = load.tables.front();
  const auto lookups = static_cast<double>(result.lookups);
  const auto ns = [&](double seconds) { return seconds / lookups * 1e9; };
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} replicas of {} samples, {} batches, {:.1f}M lookups a pass, "
      "median of {}\n",
      load.name, load.description, load.tables.size(), table.rows, table.dim, load.replicas,
      load.samples, load.batches, lookups * 1e-6, result.repetitions);
  if (table.rows != result.standard_rows)
    text += fmt::format("  not the standard {} rows a table\n", result.standard_rows);
  text += other_load_line(result.other_load);
  const int processors = usable_processors();
  if (processors < load.replicas)
    text += fmt::format("  only {} processor{} for {} hosts that are threads of one process\n",
                        processors, processors == 1 ? "" : "s", load.replicas);
  text +=
      fmt::format("  {:<29} {:>20}   {:>7} {:>7} {:>8}   {:>20}  {:>8}\n", "", "million lookups/s",
                  "enqueue", "forward", "backward", "of threads", "without");
  text += fmt::format("  {:<29} {:>20}   {:>24}   {:>20}  {:>8}\n", "", "(slowest-fastest)",
                      "ns a lookup", "(range)", "enqueue");
  for (const HostsLaneResult& lane : result.lanes) {
    const StageSeconds& stages = lane.seconds.stages;
    const auto rate = [&](double seconds) { return lookups / seconds * 1e-6; };
    text +=
        fmt::format("  {:<29} {:6.1f} {:>13}   {:7.2f} {:7.2f} {:8.2f}   {:6.2f} {:>13}  {:8.2f}\n",
                    described(lane.name, load.replicas), rate(lane.seconds.step),
                    fmt::format("({:.1f}-{:.1f})", rate(lane.slowest), rate(lane.fastest)),
                    ns(stages.enqueue), ns(stages.forward), ns(stages.backward), lane.of_threads,
                    fmt::format("({:.2f}-{:.2f})", lane.least_of_threads, lane.most_of_threads),
                    lane.of_threads_without_enqueue);
  }
  return text + messages(result);
}

std::string to_json(const HostsResult& result) {
  const auto lookups = static_cast<double>(result.lookups);
  const auto ns = [&](double seconds) { return seconds / lookups * 1e9; };
  nlohmann::ordered_json lanes = nlohmann::ordered_json::object();
  for (const HostsLaneResult& lane : result.lanes) {
    const StageSeconds& stages = lane.seconds.stages;
    lanes[lane.name] = {{"step", lookups / lane.seconds.step},
                        {"slowest", lookups / lane.slowest},
                        {"fastest", lookups / lane.fastest},
                        {"enqueue", ns(stages.enqueue)},
                        {"forward", ns(stages.forward)},
                        {"backward", ns(stages.backward)},
                        {"of_threads", lane.of_threads},
                        {"least_of_threads", lane.least_of_threads},
                        {"most_of_threads", lane.most_of_threads},
                        {"of_threads_without_enqueue", lane.of_threads_without_enqueue}};
  }
  nlohmann::ordered_json json = {{"hosts", result.load.replicas},
                                 {"workload", result.load.name},
                                 {"machine", machine_name()},
                                 {"rows", result.load.tables.front().rows},
                                 {"standard_rows", result.standard_rows},
                                 {"samples", result.load.samples},
                                 {"batches", result.load.batches},
                                 {"repetitions", result.repetitions},
                                 {"lookups", result.lookups},
                                 {"other_load", result.other_load},
                                 {"digest", result.lanes.front().digest},
                                 {"lanes", std::move(lanes)},
                                 {"smallest_message_bytes", result.smallest_bytes}};
  if (result.bytes > 0) {
    json["message_bytes"] = result.bytes;
    json["messages_alone"] = ns(result.message_seconds);
    json["transport"] = result.transport;
    json["waiting"] = result.waiting;
  }
  return json.dump();
}

}  // namespace embertable::bench
