// embertable-bench hosts times steps of a load on several hosts, pass by pass in turns: one host in
// each process of a launcher, the same hosts as threads of the first process, and that process as
// one host with as many threads; and the messages of the first of these alone. Every host has one
// replica and one thread. Without a launcher there are two hosts, and the first way is left out.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/hosts/recording_exchange.h"
#include "bench/hosts/smallest_messages.h"
#include "bench/loads/load_data.h"
#include "bench/loads/memory_need.h"
#include "bench/loads/standard_loads.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"
#include "bench/training/lane.h"

namespace embertable::bench {
namespace {

/// Hosts that are threads, where there is no exchange.
constexpr std::int32_t kHostsAlone = 2;

/// An exchange that waits sleeps longer and longer. After this time it looks only once a
/// millisecond, and its processor is free for others.
constexpr auto kUntilOthersSleep = std::chrono::milliseconds(100);

/// The first process may work alone for a long time, while the others wait for it.
constexpr double kDeadlineSeconds = 3600;

/// The processes of the benchmark, or this one alone.
class Processes {
 public:
  explicit Processes(std::shared_ptr<RecordingExchange> exchange)
      : exchange_(std::move(exchange)) {}

  bool several() const { return exchange_ != nullptr; }
  bool is_first() const { return !several() || exchange_->host() == 0; }
  std::int32_t hosts() const { return several() ? exchange_->hosts() : kHostsAlone; }
  std::int32_t count() const { return several() ? exchange_->hosts() : 1; }
  const std::shared_ptr<RecordingExchange>& exchange() const { return exchange_; }

  /// Does what only concerns this process. If it fails on one of them, all throw.
  template <class Work>
  void each(const Work& work) {
    if (!several()) return work();
    std::string error;
    try {
      work();
    } catch (const std::exception& caught) {
      error = caught.what();
    }
    exchange_->agree(error, {"a turn of the benchmark"});
  }

  /// Does what only the first process does. If it fails there, all throw.
  template <class Work>
  void first(const Work& work) {
    each([&] {
      if (is_first()) work();
    });
  }

  /// The same, while the others wait without using their processors.
  template <class Work>
  void first_alone(const Work& work) {
    const OtherLoad waiting;
    waited_ += seconds_of([&] {
      first([&] {
        if (several()) std::this_thread::sleep_for(kUntilOthersSleep);
        work();
      });
    });
    waiting_busy_ += waiting.own_seconds();
  }

  /// Returns what each process gives.
  template <class Value>
  std::vector<Value> gather(const Value& mine) {
    if (!several()) return {mine};
    const ByteSpan bytes = std::as_bytes(std::span(&mine, 1));
    const std::vector<ByteSpan> send(static_cast<std::size_t>(count()), bytes);
    std::vector<ByteSpan> received(send.size());
    exchange_->start(Channel::kStep, {"figures of the benchmark"}, send);
    exchange_->finish(Channel::kStep, received);
    std::vector<Value> all(received.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      std::memcpy(&all[i], received[i].data(), sizeof(Value));
    return all;
  }

  /// Returns the share of a processor that this process took while it waited.
  double waiting() const { return is_first() ? 0 : waiting_busy_ / waited_; }

 private:
  std::shared_ptr<RecordingExchange> exchange_;
  double waited_ = 0;
  double waiting_busy_ = 0;
};

/// Returns the load with a replica for each host, of the size that the first process finds free
/// memory for.
Load load_of_hosts(const Load& standard, const CommonOptions& options, Processes& processes) {
  Load load = standard;
  load.replicas = processes.hosts();
  processes.first([&] {
    load = sized_load(load, options.rows, options.batches,
                      {.tables = processes.several() ? 3 : 2, .processes = processes.count()});
  });
  load.batches = processes.gather(load.batches).front();
  for (LoadTable& table : load.tables) table.rows = processes.gather(table.rows).front();
  return load;
}

/// Returns the number of processors that this process may run on.
int usable_processors() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  return CPU_COUNT(&usable);
}

/// Returns figures of HostsBench for people.
std::string text_of(const Load& load, const Json& figures) {
  const auto of = [&](const char* key) { return figures[key].get<double>(); };
  const std::int64_t rows = load.tables.front().rows;
  std::string text = fmt::format(
      "{}: {}\n  {} x {} rows x {}, {} replicas of {} samples, {} batches, {:.1f}M lookups a pass, "
      "median of {}\n",
      load.name, load.description, load.tables.size(), rows, load.tables.front().dim, load.replicas,
      load.samples, load.batches, of("lookups") * 1e-6, of("repetitions"));
  if (figures["standard_rows"] != rows)
    text += fmt::format("  not the standard {} rows a table\n", of("standard_rows"));
  text += other_load_line(of("other_load"));
  const int processors = usable_processors();
  if (processors < load.replicas)
    text += fmt::format("  only {} processors for {} hosts that are threads of one process\n",
                        processors, load.replicas);
  const Table table({{"lane", "million lookups/s, ns a lookup", -31},
                     {"step", "step", 7, 1, 1e-6},
                     {"slowest", "slowest", 8, 1, 1e-6},
                     {"fastest", "fastest", 8, 1, 1e-6},
                     {"enqueue", "enqueue", 8, 2},
                     {"forward", "forward", 8, 2},
                     {"backward", "backward", 9, 2},
                     {"of_threads", "of threads", 11, 2},
                     {"least_of_threads", "least", 6, 2},
                     {"most_of_threads", "most", 6, 2},
                     {"of_threads_without_enqueue", "without enqueue", 16, 2}});
  text += table.heading();
  for (const auto& [name, rates] : figures["lanes"].items()) {
    Json line = rates;
    line["lane"] = name == "mpi"       ? fmt::format("{} ranks x 1 thread, MPI", load.replicas)
                   : name == "threads" ? fmt::format("{} hosts x 1 thread, threads", load.replicas)
                                       : fmt::format("1 host x {} threads", load.replicas);
    text += table.line(line);
  }
  const double smallest = of("smallest_message_bytes");
  if (!figures.contains("message_bytes"))
    return text + fmt::format("  smallest possible messages: {:.1f} bytes a lookup\n\n", smallest);
  const double bytes = of("message_bytes"), ns = of("messages_alone");
  return text +
         fmt::format(
             "  messages to other hosts: {:.1f} bytes a lookup; the smallest possible: {:.1f} "
             "({:.3f} of it)\n"
             "  the same messages alone: {:.2f} GB/s, {:.2f} ns a lookup, {:.2f} of the step; "
             "transport: {}\n"
             "  while rank 0 worked alone, another took at most {:.1f} % of a processor\n\n",
             bytes, smallest, bytes / smallest, bytes / ns, ns,
             ns * 1e-9 * figures["lanes"]["mpi"]["step"].get<double>(),
             figures["transport"].get<std::string>(), of("waiting") * 100);
}

/// One load, trained in three ways.
class HostsBench {
 public:
  HostsBench(const Load& load, Processes& processes) : processes_(processes) {
    processes_.each([&] { data_.emplace(load); });
    const std::int32_t hosts = processes_.hosts();
    if (processes_.several())
      ranks_.emplace(make_lane_of_hosts(*data_, hosts, processes_.exchange()));
    processes_.first([&] {
      threads_.emplace(make_lane_of_hosts(*data_, hosts));
      one_host_.emplace(make_lane(*data_, hosts));
    });
  }

  /// Lets every way make one pass, each time another one first.
  void turn(std::size_t first, bool counts) {
    constexpr std::size_t kWays = 4;
    for (std::size_t i = 0; i < kWays; ++i) {
      const std::size_t way = (first + i) % kWays;
      if (way == 0 && ranks_) train_on_ranks(counts);
      if (way == 1 && bare_) pass_messages(counts);
      if (way == 2) processes_.first_alone([&] { train(*threads_, counts); });
      if (way == 3) processes_.first_alone([&] { train(*one_host_, counts); });
    }
  }

  /// Prints, on the first process, what all measured; `other_load` is from before the first turn.
  /// Throws std::runtime_error if the tables of two ways differ.
  void report(const Load& standard, const CommonOptions& options, const std::string& transport,
              const OtherLoad& other_load) {
    const Load& load = data_->load;
    const auto lookups = static_cast<double>(count_lookups(data_->batches));
    const std::vector<double> busy = processes_.gather(other_load.own_seconds());
    const double companions = std::accumulate(busy.begin() + 1, busy.end(), 0.0);
    double bytes = 0, smallest = 0;
    for (const std::size_t sent : processes_.gather(bare_ ? bare_->bytes_to_others() : 0))
      bytes += static_cast<double>(sent);
    for (const LoadBatch& batch : data_->batches)
      smallest += static_cast<double>(smallest_message_bytes(load, batch));
    const double waiting = std::ranges::max(processes_.gather(processes_.waiting()));
    const double share = other_load.share(companions);
    std::vector<Way> ways;
    if (ranks_) ways.push_back({"mpi", &*ranks_, ranks_->engine().digest()});
    processes_.first([&] {
      for (const auto& [name, lane] : {std::pair{"threads", &*threads_}, {"one_host", &*one_host_}})
        ways.push_back({name, lane, lane->engine().digest()});
      for (const Way& way : ways)
        if (way.digest != ways.front().digest)
          throw std::runtime_error(load.name + ": the tables of '" + way.name +
                                   "' have the digest " + way.digest + ", those of '" +
                                   ways.front().name + "' " + ways.front().digest);
      Json lanes = Json::object();
      for (const Way& way : ways) lanes[way.name] = figures_of(*way.lane, lookups);
      Json figures = {{"hosts", load.replicas},
                      {"workload", load.name},
                      {"machine", machine_name()},
                      {"rows", load.tables.front().rows},
                      {"standard_rows", standard.tables.front().rows},
                      {"samples", load.samples},
                      {"batches", load.batches},
                      {"repetitions", options.repetitions},
                      {"lookups", count_lookups(data_->batches)},
                      {"other_load", share},
                      {"digest", ways.front().digest},
                      {"lanes", std::move(lanes)},
                      {"smallest_message_bytes", smallest / lookups}};
      if (!messages_.empty()) {
        figures["message_bytes"] = bytes / lookups;
        figures["messages_alone"] = median(messages_) / lookups * 1e9;
        figures["transport"] = transport;
        figures["waiting"] = waiting;
      }
      print(options.json, figures, text_of(load, figures));
    });
  }

 private:
  struct Way {
    std::string name;
    const Lane* lane;
    std::string digest;
  };

  void train(Lane& lane, bool counts) {
    lane.warm_up();
    for (std::size_t batch = 0; batch < data_->batches.size(); ++batch) lane.step(batch);
    lane.end_pass(counts);
  }

  void train_on_ranks(bool counts) {
    RecordingExchange& exchange = *processes_.exchange();
    ranks_->warm_up();
    if (!bare_) exchange.begin_record();
    for (std::size_t batch = 0; batch < data_->batches.size(); ++batch) ranks_->step(batch);
    ranks_->end_pass(counts);
    if (bare_) return;
    processes_.each([&] { bare_.emplace(exchange, exchange.end_record()); });
  }

  void pass_messages(bool counts) {
    processes_.exchange()->agree("", {"the beginning of bare messages"});
    const double seconds = seconds_of([&] { bare_->run(); });
    if (counts) messages_.push_back(seconds);
  }

  /// Returns the rates of a way, and its passes beside those of `threads`.
  Json figures_of(const Lane& lane, double lookups) const {
    std::vector<double> steps, ratios, without_enqueue;
    for (std::size_t i = 0; i < lane.passes().size(); ++i) {
      const StageSeconds &pass = lane.passes()[i], &beside = threads_->passes()[i];
      steps.push_back(pass.step());
      ratios.push_back(beside.step() / pass.step());
      without_enqueue.push_back((beside.forward + beside.backward) /
                                (pass.forward + pass.backward));
    }
    const LaneSeconds seconds = lane.median();
    const auto ns = [&](double of) { return of / lookups * 1e9; };
    return {{"step", lookups / seconds.step},
            {"slowest", lookups / std::ranges::max(steps)},
            {"fastest", lookups / std::ranges::min(steps)},
            {"enqueue", ns(seconds.stages.enqueue)},
            {"forward", ns(seconds.stages.forward)},
            {"backward", ns(seconds.stages.backward)},
            {"of_threads", median(ratios)},
            {"least_of_threads", std::ranges::min(ratios)},
            {"most_of_threads", std::ranges::max(ratios)},
            {"of_threads_without_enqueue", median(without_enqueue)}};
  }

  Processes& processes_;
  std::optional<LoadData> data_;
  std::optional<Lane> ranks_, threads_, one_host_;
  std::optional<BareMessages> bare_;  ///< the messages of the first pass of `ranks_`
  std::vector<double> messages_;      ///< seconds of each pass of `bare_`
};

/// The exchange of the processes of a launcher; null if there is none, or one process alone.
std::shared_ptr<RecordingExchange> make_hosts_exchange() {
  if (!find_mpi_launcher()) return nullptr;
  auto exchange = make_mpi_exchange({.deadline_seconds = kDeadlineSeconds, .communicator = {}});
  if (exchange->hosts() == 1) return nullptr;
  return std::make_shared<RecordingExchange>(std::move(exchange));
}

/// The way that messages go, as far as this process can tell.
std::string transport_name(const std::string& given) {
  if (!given.empty()) return given;
  const char* const layers = std::getenv("OMPI_MCA_btl");
  return layers != nullptr ? layers : "chosen by MPI";
}

void run_hosts(const std::string& transport, const CommonOptions& options) {
  const auto exchange = make_hosts_exchange();
  for (const std::string& name :
       options.workloads.empty() ? std::vector<std::string>{"W1", "W2"} : options.workloads) {
    const Load& standard = find_standard_load(name);
    Processes processes(exchange);
    HostsBench bench(load_of_hosts(standard, options, processes), processes);
    const OtherLoad other_load;
    for (int repetition = 0; repetition <= options.repetitions; ++repetition)
      bench.turn(static_cast<std::size_t>(repetition), repetition > 0);
    bench.report(standard, options, transport_name(transport), other_load);
  }
}

}  // namespace

Command add_hosts(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "hosts", "One host in each process of mpirun, in turns with hosts that are threads");
  auto transport = std::make_shared<std::string>();
  command->add_option("--transport", *transport, "What the report calls the way that messages go")
      ->default_str("OMPI_MCA_btl, where it is set");
  return CommonAdder(*command, common)
      .workloads("W1 W2")
      .repetitions(5)
      .rows("the workload's, halved until three copies fit into the free memory")
      .batches("the workload's")
      .json()
      .runs([transport, &common] { run_hosts(*transport, common); });
}

}  // namespace embertable::bench
