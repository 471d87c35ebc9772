// Engines whose hosts are the ranks of a launcher, or else the threads of this process.
//
// engine_rank digests SEED ENGINES HOSTS THREADS SAVES [FROM]
//   Prints the digest of each random engine, which saves in the middle to a folder in SAVES. With
//   FROM, the SAVES of another run, it goes on from those saves too, to the same digest.
//
// engine_rank lose FOLDER OPERATION EVENT kill|stop RANK DEADLINE
//   In a step, save or restore, the rank RANK is killed or stopped before the call with the number
//   EVENT of those that it makes of its exchange. The others write what the engine throws to
//   FOLDER/<rank> and exit with 75. EVENT -1: nobody is lost, and FOLDER/0 lists the calls.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"
#include "testing/engine/scene.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
namespace fs = std::filesystem;

constexpr std::int32_t kReplicas = 24;
constexpr int kSteps = 4;

/// Where an engine runs.
struct Place {
  std::shared_ptr<Exchange> exchange;  ///< null: all hosts are threads of this process
  std::int32_t hosts = 1;
  std::int32_t threads = 1;
};

/// A random engine with what it is fed. All ranks make the same one.
class RandomEngine {
 public:
  RandomEngine(std::uint64_t seed, const Place& place)
      : seed_(seed),
        local_(place.exchange ? kReplicas / place.hosts : kReplicas),
        first_(place.exchange ? place.exchange->host() * local_ : 0),
        dice_(mix_seeds(seed, 0)),
        scene_(seed, limits()),
        engine_(make(place)) {}

  Embedding& engine() { return engine_; }

  /// `ahead`: the batch of the next step may be in the queue before this one's is taken, so that
  /// its ids travel early.
  void step(int number, bool ahead = false) {
    Dice dice(mix_seeds(seed_, static_cast<std::uint64_t>(number) + 1));
    const auto [training, by_token] = kind_of(dice, number);
    if (by_token) {
      LookupResult looked = engine_.look_up(batches(number), training);
      if (training)
        apply(number, looked.activations, [&](const auto& gradients) {
          engine_.apply_gradients(std::move(looked.token), gradients);
        });
    } else {
      enqueue(number);
      if (ahead && number + 1 < kSteps) enqueue(number + 1);
      const Activations activations = engine_.dequeue();
      if (training)
        apply(number, activations,
              [&](const auto& gradients) { engine_.apply_gradients(gradients); });
    }
    if (dice.chance(25)) double_a_row();
  }

 private:
  struct StepKind {
    bool training = true, by_token = false;
  };
  StepKind kind_of(Dice& dice, int number) const {
    const bool training = number == 0 || dice.chance(80);
    return {training, !pipelined_ && dice.chance(30)};
  }

  std::vector<Batch> batches(int number) const {
    const auto first = scene_.batches[number].begin() + first_;
    return {first, first + local_};
  }

  /// Enqueues the batch of a step, unless it has been or the step takes none from the queue.
  void enqueue(int number) {
    Dice dice(mix_seeds(seed_, static_cast<std::uint64_t>(number) + 1));
    const StepKind kind = kind_of(dice, number);
    if (kind.by_token || number <= last_enqueued_) return;
    engine_.enqueue(batches(number), {.training = kind.training});
    last_enqueued_ = number;
  }

  SceneLimits limits() {
    return {.rows = dice_.pick({5, 60, 400}),
            .outputs = 4,
            .columns = 4,
            .replicas = kReplicas,
            .steps = kSteps,
            .variable = dice_.chance(30),
            .any_rule = dice_.chance(50)};
  }

  Embedding make(const Place& place) {
    pipelined_ = dice_.chance(50);
    return scene_.engine({.hosts = place.hosts,
                          .sharding = dice_.pick({Sharding::kDiv, Sharding::kMod}),
                          .executor = make_thread_pool(place.threads),
                          .exchange = place.exchange},
                         {.pipeline_execution_with_tensor_core = pipelined_,
                          .count_unique_ids = dice_.chance(50),
                          .tuning = {.bucket_bytes = dice_.pick({0, 300}),
                                     .inline_floats = dice_.pick({0, 1 << 13})}});
  }

  template <class Use>
  void apply(int number, const Activations& activations, Use use) const {
    std::vector<Nested<Gradient>> trees;
    std::vector<F> kept;
    kept.reserve(scene_.features.size() * kReplicas);
    for (std::int32_t r = 0; r < local_; ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t f = 0; f < std::ssize(scene_.features); ++f) {
        const F& values = kept.emplace_back(
            scene_.gradient(number, first_ + r, f, activations(f, r).values, 0.25f));
        leaves.push_back(values.empty() ? Gradient::none() : Gradient{values, {}});
      }
      trees.emplace_back(engine_.feature_config().structure(), std::move(leaves));
    }
    use(trees);
  }

  void double_a_row() {
    const std::vector<std::int64_t> last = {scene_.tables[0].config->vocabulary_size - 1};
    F row(scene_.tables[0].config->dim);
    engine_.read_rows("t0", last, row);
    for (float& value : row) value *= 2;
    engine_.assign_rows("t0", last, row);
  }

  std::uint64_t seed_;
  std::int32_t local_, first_;  ///< replicas of this process
  Dice dice_;
  Scene scene_;
  bool pipelined_ = false;
  int last_enqueued_ = -1;
  Embedding engine_;
};

std::string digest_of(std::uint64_t seed, const Place& place, const fs::path& saves) {
  RandomEngine random(seed, place);
  for (int step = 0; step < kSteps; ++step) {
    if (step == kSteps / 2) random.engine().save(saves);
    random.step(step, place.hosts > 1);
  }
  return random.engine().digest();
}

std::string digest_from(std::uint64_t seed, const Place& place, const fs::path& saves) {
  RandomEngine random(seed, place);
  random.engine().restore(saves);
  for (int step = kSteps / 2; step < kSteps; ++step) random.step(step);
  return random.engine().digest();
}

int print_digests(int count, char** arguments) {
  Place place{
      .exchange = nullptr, .hosts = std::atoi(arguments[2]), .threads = std::atoi(arguments[3])};
  if (find_mpi_launcher()) place.exchange = make_mpi_exchange();
  const bool first = !place.exchange || place.exchange->host() == 0;
  const std::uint64_t seed = std::stoull(arguments[0]);
  for (int i = 0; i < std::atoi(arguments[1]); ++i) {
    const std::uint64_t one = mix_seeds(seed, static_cast<std::uint64_t>(i));
    const std::string name = "engine_" + std::to_string(i);
    const std::string digest = digest_of(one, place, fs::path(arguments[4]) / name);
    if (count > 5) {
      const std::string again = digest_from(one, place, fs::path(arguments[5]) / name);
      if (again != digest)
        throw StateError(name + ": " + digest + ", but " + again + " from the save");
    }
    if (first) std::cout << name << ' ' << digest << '\n';
  }
  return 0;
}

/// Passes all calls on, and keeps what they were. One of them can be where this rank is lost.
class WatchedExchange final : public Exchange {
 public:
  explicit WatchedExchange(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  /// Forgets the calls that were made. `signal` ends or stops this process before the call `event`.
  void watch(std::int64_t event, int signal) {
    calls.clear();
    event_ = event;
    signal_ = signal;
  }

  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    at("start " + to_string(stage));
    exchange_->start(channel, stage, send);
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    at("finish");
    exchange_->finish(channel, received);
  }
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view reason) override { return exchange_->abort(reason); }

  std::vector<std::string> calls;
  std::chrono::steady_clock::time_point last_call;

 private:
  void at(const std::string& call) {
    if (std::ssize(calls) == event_) {
      // Until this rank has finished a round, others may wait for what it sent before `watch`.
      if (event_ < 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(::getpid(), signal_);
    }
    calls.push_back(call);
    last_call = std::chrono::steady_clock::now();
  }

  const std::unique_ptr<Exchange> exchange_;
  std::int64_t event_ = -1;
  int signal_ = 0;
};

void report(const fs::path& file, const std::string& text) {
  std::ofstream(file.string() + ".new") << text;
  fs::rename(file.string() + ".new", file);
}

int lose_a_rank(char** arguments) {
  // MPICH's launcher tells survivors by this signal that a rank was lost.
  ::signal(SIGUSR1, SIG_IGN);
  const fs::path folder = arguments[0];
  const std::string operation = arguments[1];
  const std::int64_t event = std::atoll(arguments[2]);
  const int signal = std::string(arguments[3]) == "kill" ? SIGKILL : SIGSTOP;
  const auto exchange = std::make_shared<WatchedExchange>(
      make_mpi_exchange({.deadline_seconds = std::atof(arguments[5])}));
  const fs::path file = folder / std::to_string(exchange->host());
  RandomEngine random(1, {.exchange = exchange, .hosts = exchange->hosts()});
  random.step(0);
  if (operation == "restore") random.engine().save(folder / "run");
  exchange->watch(exchange->host() == std::atoi(arguments[4]) ? event : -1, signal);
  try {
    if (operation == "step") random.step(1);
    if (operation == "save") random.engine().save(folder / "run");
    if (operation == "restore") random.engine().restore(folder / "run");
    random.engine().digest();  // a rank may be lost once nobody needs it any more
    std::string calls;
    for (const std::string& call : exchange->calls) calls += call + "\n";
    report(file, calls);
    return 0;
  } catch (const StateError& error) {
    const std::chrono::duration<double> waited =
        std::chrono::steady_clock::now() - exchange->last_call;
    report(file, std::to_string(waited.count()) + "\n" + error.what());
  }
  // Launchers end the job with its first rank.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return 75;
}

int run(int count, char** arguments) {
  const std::string what = count > 0 ? arguments[0] : "";
  if (what == "digests" && (count == 6 || count == 7))
    return print_digests(count - 1, arguments + 1);
  if (what == "lose" && count == 7) return lose_a_rank(arguments + 1);
  std::cerr << "usage: engine_rank digests|lose ARGUMENTS, as engine_rank.cc says\n";
  return 2;
}

}  // namespace
}  // namespace embertable

int main(int count, char** arguments) {
  try {
    return embertable::run(count - 1, arguments + 1);
  } catch (const std::exception& error) {
    std::cerr << "engine_rank: " << error.what() << '\n';
    return 1;
  }
}
