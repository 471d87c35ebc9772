#include "bench/hosts/run_hosts.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/memory.h"
#include "bench/hosts/smallest_messages.h"
#include "bench/loads/load_data.h"
#include "bench/loads/memory_need.h"
#include "bench/machine/machine.h"
#include "bench/machine/timing.h"

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

  /// Does what only the first process does, while the others wait without using their processors.
  template <class Work>
  void first(const Work& work) {
    const OtherLoad waiting;
    waited_ += seconds_of([&] {
      each([&] {
        if (!is_first()) return;
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

/// Sends the messages of recorded rounds, from memory that is always the same.
class BareMessages {
 public:
  BareMessages(Exchange& exchange, std::vector<RecordedRound> rounds)
      : exchange_(exchange), rounds_(std::move(rounds)) {
    std::size_t most = 0;
    for (const RecordedRound& round : rounds_)
      most = std::max(most, *std::ranges::max_element(round.bytes));
    memory_ = Mapping(static_cast<std::int64_t>(most));
    memory_.touch();
  }

  void run() {
    const auto hosts = static_cast<std::size_t>(exchange_.hosts());
    std::vector<ByteSpan> send(hosts), received(hosts);
    for (const RecordedRound& round : rounds_) {
      for (std::size_t host = 0; host < hosts; ++host)
        send[host] = {memory_.data(), round.bytes[host]};
      exchange_.start(round.channel, {"bare messages"}, send);
      exchange_.finish(round.channel, received);
    }
  }

 private:
  Exchange& exchange_;
  std::vector<RecordedRound> rounds_;
  Mapping memory_;
};

/// Returns the load with a replica for each host, of the size that the first process finds free
/// memory for.
Load load_of_hosts(const Load& standard, const HostsBenchOptions& options, Processes& processes) {
  Load load = standard;
  load.replicas = processes.hosts();
  processes.each([&] {
    if (!processes.is_first()) return;
    load = sized_load(load, options.rows, options.batches,
                      {.tables = processes.several() ? 3 : 2, .processes = processes.count()});
  });
  load.batches = processes.gather(load.batches).front();
  for (LoadTable& table : load.tables) table.rows = processes.gather(table.rows).front();
  return load;
}

/// One load, trained in three ways.
class HostsBench {
 public:
  HostsBench(const Load& load, Processes& processes) : processes_(processes) {
    processes_.each([&] { data_.emplace(load); });
    const std::int32_t hosts = processes_.hosts();
    if (processes_.several())
      ranks_.emplace(make_lane_of_hosts(*data_, hosts, processes_.exchange()));
    processes_.each([&] {
      if (!processes_.is_first()) return;
      threads_.emplace(make_lane_of_hosts(*data_, hosts));
      one_host_.emplace(make_lane(*data_, hosts));
    });
  }

  /// Lets every way make one pass, each time another one first.
  void turn(std::size_t first, bool counts) {
    constexpr std::size_t kWays = 4;
    for (std::size_t i = 0; i < kWays; ++i) {
      switch ((first + i) % kWays) {
        case 0:
          if (processes_.several()) train_on_ranks(counts);
          break;
        case 1:
          if (bare_) pass_messages(counts);
          break;
        case 2:
          processes_.first([&] { train(*threads_, counts); });
          break;
        default:
          processes_.first([&] { train(*one_host_, counts); });
      }
    }
    steps_ += data_->batches.size();
  }

  /// Returns what is known on the first process; `other_load` is from before the first turn.
  HostsResult result(const OtherLoad& other_load) {
    HostsResult result;
    const std::vector<double> busy = processes_.gather(other_load.own_seconds());
    double companions = 0;
    for (std::size_t i = 1; i < busy.size(); ++i) companions += busy[i];
    result.other_load = other_load.share(companions);
    result.load = data_->load;
    result.lookups = count_lookups(data_->batches);
    const auto lookups = static_cast<double>(result.lookups);
    for (const std::size_t bytes : processes_.gather(sent_))
      result.bytes += static_cast<double>(bytes) / lookups;
    result.waiting = std::ranges::max(processes_.gather(processes_.waiting()));
    if (!messages_.empty()) result.message_seconds = median(messages_);
    for (const LoadBatch& batch : data_->batches)
      result.smallest_bytes +=
          static_cast<double>(smallest_message_bytes(data_->load, batch)) / lookups;

    const std::string of_ranks = ranks_ ? ranks_->lane().digest() : "";
    processes_.each([&] {
      if (!processes_.is_first()) return;
      if (ranks_) add(result, "mpi", *ranks_, of_ranks);
      add(result, "threads", *threads_, threads_->lane().digest());
      add(result, "one_host", *one_host_, one_host_->lane().digest());
    });
    return result;
  }

 private:
  void train(TimedLane& lane, bool counts) {
    lane.lane().step(0, 0);  // what another way has left in caches and asleep is no part of a pass
    for (std::size_t batch = 0; batch < data_->batches.size(); ++batch)
      lane.step(batch, steps_ + batch);
    lane.end_pass(counts);
  }

  void train_on_ranks(bool counts) {
    ranks_->lane().step(0, 0);
    if (!bare_) processes_.exchange()->begin_record();
    for (std::size_t batch = 0; batch < data_->batches.size(); ++batch)
      ranks_->step(batch, steps_ + batch);
    ranks_->end_pass(counts);
    if (bare_) return;
    std::vector<RecordedRound> rounds = processes_.exchange()->end_record();
    sent_ = bytes_to_others(rounds, processes_.exchange()->host());
    processes_.each([&] { bare_.emplace(*processes_.exchange(), std::move(rounds)); });
  }

  void pass_messages(bool counts) {
    processes_.exchange()->agree("", {"the beginning of bare messages"});
    const double seconds = seconds_of([&] { bare_->run(); });
    if (counts) messages_.push_back(seconds);
  }

  /// Throws std::runtime_error if the tables differ from those of an earlier way.
  void add(HostsResult& result, const char* name, const TimedLane& lane,
           const std::string& digest) const {
    if (!result.lanes.empty() && result.lanes.front().digest != digest)
      throw std::runtime_error(result.load.name + ": the tables of '" + name +
                               "' have the digest " + digest + ", those of '" +
                               result.lanes.front().name + "' " + result.lanes.front().digest);
    HostsLaneResult& of = result.lanes.emplace_back();
    of.name = name;
    of.digest = digest;
    of.seconds = lane.median();
    std::vector<double> steps, ratios, without_enqueue;
    for (std::size_t i = 0; i < lane.passes().size(); ++i) {
      const StageSeconds &pass = lane.passes()[i], &beside = threads_->passes()[i];
      steps.push_back(pass.step());
      ratios.push_back(beside.step() / pass.step());
      without_enqueue.push_back((beside.forward + beside.backward) /
                                (pass.forward + pass.backward));
    }
    of.fastest = std::ranges::min(steps);
    of.slowest = std::ranges::max(steps);
    of.least_of_threads = std::ranges::min(ratios);
    of.most_of_threads = std::ranges::max(ratios);
    of.of_threads = median(std::move(ratios));
    of.of_threads_without_enqueue = median(std::move(without_enqueue));
  }

  Processes& processes_;
  std::optional<LoadData> data_;
  std::optional<TimedLane> ranks_, threads_, one_host_;
  std::optional<BareMessages> bare_;  ///< the messages of the first pass of `ranks_`
  std::vector<double> messages_;      ///< seconds of each pass of `bare_`
  std::size_t sent_ = 0;              ///< bytes that this process sends to others in a pass
  std::size_t steps_ = 0;             ///< steps of each way in earlier turns
};

/// The way that messages go, as far as this process can tell.
std::string transport_name(const std::string& given) {
  if (!given.empty()) return given;
  const char* const layers = std::getenv("OMPI_MCA_btl");
  return layers != nullptr ? layers : "chosen by MPI";
}

}  // namespace

std::shared_ptr<RecordingExchange> make_hosts_exchange() {
  if (!find_mpi_launcher()) return nullptr;
  auto exchange = make_mpi_exchange({.deadline_seconds = kDeadlineSeconds, .communicator = {}});
  if (exchange->hosts() == 1) return nullptr;
  return std::make_shared<RecordingExchange>(std::move(exchange));
}

HostsResult run_hosts(const Load& standard, const HostsBenchOptions& options,
                      const std::shared_ptr<RecordingExchange>& exchange) {
  Processes processes(exchange);
  HostsBench bench(load_of_hosts(standard, options, processes), processes);
  const OtherLoad other_load;
  for (int repetition = 0; repetition <= options.repetitions; ++repetition)
    bench.turn(static_cast<std::size_t>(repetition), repetition > 0);
  HostsResult result = bench.result(other_load);
  result.standard_rows = standard.tables.front().rows;
  result.repetitions = options.repetitions;
  if (exchange) result.transport = transport_name(options.transport);
  return result;
}

}  // namespace embertable::bench
