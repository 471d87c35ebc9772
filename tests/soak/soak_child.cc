// Trains in episodes while other threads make random calls, and prints what it sees for
// soak_test.py.
//
// soak_child RUN SECONDS SEED
//
// Two replicas train on threads of their own. Other threads save, read rows, look up, ask for
// digests and memory, and read the run's checkpoints. Rates, logs and executors throw now and then.
// The tables depend on the number of steps alone, so everyone who sees step N must see the same
// digest, whatever was killed, restored or thrown before. Hosts, threads and tuning differ by the
// seed. Lines of the output, each whole:
//
//   tables N DIGEST      tables of the engine after N steps
//   file N DIGEST        the checkpoint of step N, as another thread reads it
//   saved N              a save of step N has returned
//   resident BYTES       memory at the end of an episode
//   counts NAME N ...    at the end: how often things happened
//
// Ends with 1 and a line `wrong: ...` for anything that should not be. Ends with 3 if the run has
// steps but none that can be read.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"

namespace embertable {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int32_t kReplicas = 2;
constexpr std::int64_t kRows = 2000;
constexpr std::int64_t kSamples = 64;
constexpr std::int64_t kEpisodeSteps = 40;
constexpr std::string_view kThrown = "thrown by the soak";

std::mutex output;  // NOLINT: lines of several threads stay whole

void print(const std::string& line) {
  const std::lock_guard lock(output);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

[[noreturn]] void wrong(const std::string& what) {
  print("wrong: " + what);
  std::_Exit(1);
}

/// Counts by name, from any thread.
class Counts {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    ++counts_[name];
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    std::string text = "counts";
    for (const auto& [name, count] : counts_) text += fmt::format(" {} {}", name, count);
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::int64_t> counts_;
};

/// Throws of one thread.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(n));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  std::mt19937_64 bits_;
};

/// Throws once in a while while it is switched on; a callback's part of the soak.
class Thrower {
 public:
  Thrower(std::uint64_t seed, std::int64_t one_in) : seed_(seed), one_in_(one_in) {}
  void maybe_throw() {
    const auto call = static_cast<std::uint64_t>(calls_.fetch_add(1));
    if (on && random_bits(seed_, 0, 0, call) % static_cast<std::uint64_t>(one_in_) == 0)
      throw std::runtime_error(std::string(kThrown));
  }
  std::atomic<bool> on = false;

 private:
  const std::uint64_t seed_;
  const std::int64_t one_in_;
  std::atomic<std::int64_t> calls_ = 0;
};

/// A pool of threads whose regions fail now and then, before their work.
class ThrowingPool final : public Executor {
 public:
  ThrowingPool(std::int32_t workers, Thrower& thrower)
      : pool_(make_thread_pool(workers)), thrower_(thrower) {}
  std::int32_t workers() const noexcept override { return pool_->workers(); }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    thrower_.maybe_throw();
    pool_->run(items, body);
  }

 private:
  const std::shared_ptr<Executor> pool_;
  Thrower& thrower_;
};

/// The ids that a replica looks up in a step, in memory that the batch borrows.
class StepBatch {
 public:
  StepBatch(std::int64_t step, std::int32_t replica) {
    const RandomRow random(mix_seeds(static_cast<std::uint64_t>(step), 77),
                           static_cast<std::uint64_t>(replica));
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) {
      return static_cast<std::int64_t>(random.bits(draw++) % n);
    };
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::int64_t i = below(9); i > 0; --i) ragged_.push_back(below(kRows));
      splits_.push_back(std::ssize(ragged_));
      dense_.push_back(below(4) == 0 ? 7 : below(kRows));  // a hot row
    }
  }
  Batch batch() const {
    return {Nested<FeatureIds>::list(
                {FeatureIds(RaggedIds{splits_, ragged_}), FeatureIds(DenseIds{dense_, {}})}),
            {}};
  }

 private:
  std::vector<std::int64_t> ragged_, splits_ = {0}, dense_;
};

Nested<FeatureConfig> features() {
  const auto table = [](std::string name, std::int32_t dim, Combiner combiner) {
    FeatureConfig feature;
    feature.table = make_table({.vocabulary_size = kRows,
                                .dim = dim,
                                .initializer = Initializer::uniform(-1, 1, 3),
                                .optimizer = {},
                                .combiner = combiner,
                                .name = std::move(name)});
    return feature;
  };
  return Nested<FeatureConfig>::list(
      {table("words", 16, Combiner::kMean), table("items", 8, Combiner::kSum)});
}

std::int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

class Soak {
 public:
  Soak(fs::path run, std::uint64_t seed)
      : seed_(seed),
        dice_(seed),
        rate_(mix_seeds(seed, 1), 40),
        log_(mix_seeds(seed, 2), 3),
        pool_(mix_seeds(seed, 3), 1500),
        run_(std::move(run)) {
    make_engine();
  }

  void run(std::chrono::seconds time) {
    const Clock::time_point end = Clock::now() + time;
    if (!run_.steps().empty()) restore();
    engine_->build(kSamples);
    do {
      episode();
      if (!engine_failed() && dice_.one_in(4)) save();
      if (engine_failed()) {
        // A restore leaves batches in the queues; a new engine has none.
        counts_.add("failed_engine");
        make_engine();
        engine_->build(kSamples);
        restore();
      } else if (dice_.one_in(4)) {
        restore();
      }
      print(fmt::format("tables {} {}", engine_->step(), engine_->digest()));
      print(fmt::format("resident {}", resident_bytes()));
    } while (Clock::now() < end);
    print(counts_.text());
  }

 private:
  void make_engine() {
    StrategyOptions strategy;
    strategy.hosts = dice_.one_in(2) ? 1 : kReplicas;
    strategy.replicas_per_host = kReplicas / strategy.hosts;
    strategy.sharding = dice_.one_in(2) ? Sharding::kDiv : Sharding::kMod;
    strategy.executor =
        std::make_shared<ThrowingPool>(static_cast<std::int32_t>(1 + dice_.below(3)), pool_);
    EmbeddingOptions options;
    options.tuning.bucket_bytes = dice_.below(3) * 300;
    options.gradient_policy = GradientPolicy::kError;
    options.log = [this](std::string_view) { log_.maybe_throw(); };
    const LearningRate rate = LearningRate::dynamic([this] {
      rate_.maybe_throw();
      return 0.05;
    });
    engine_.emplace(features(), Optimizer("adagrad", rate), make_strategy(strategy), options);
  }

  /// Trains some steps while other threads do what they like.
  void episode() {
    switch_throwers(true);
    if (run_.steps().empty()) save();
    const std::int64_t first = engine_->step();
    const std::int64_t last = first + 1 + dice_.below(kEpisodeSteps);
    training_ = kReplicas;
    std::vector<std::thread> threads;
    for (std::int32_t r = 0; r < kReplicas; ++r)
      threads.emplace_back([this, r, first, last] { train(r, first, last); });
    for (std::uint64_t t = 0; t < 2; ++t)
      threads.emplace_back([this, seed = mix_seeds(seed_, ++thread_)] { call_at_random(seed); });
    threads.emplace_back([this] { read_checkpoints(); });
    for (std::thread& thread : threads) thread.join();
    switch_throwers(false);
    if (!engine_failed() && engine_->step() != last)
      wrong(fmt::format("{} steps were trained and none failed, but the engine counts {}", last,
                        engine_->step()));
  }

  void switch_throwers(bool on) {
    rate_.on = on;
    log_.on = on;
    pool_.on = on;
  }

  void train(std::int32_t replica, std::int64_t first, std::int64_t last) {
    Embedding::Replica part = engine_->replica(replica);
    for (std::int64_t step = first; step < last; ++step) {
      const StepBatch data(step, replica);
      Activations activations;
      if (!repeat("enqueue", [&] { part.enqueue(data.batch()); })) break;
      if (!repeat("dequeue", [&] { activations = part.dequeue(); })) break;
      std::vector<std::vector<float>> values;
      std::vector<Gradient> gradients;
      for (std::int64_t f = 0; f < activations.features(); ++f) {
        const std::span<const float> from = activations(f).values;
        std::vector<float>& to = values.emplace_back(from.begin(), from.end());
        for (float& value : to) value = 0.01F * value + 0.001F;
        gradients.push_back({to, activations(f).shape});
      }
      const Nested<Gradient> tree(activations.structure(), std::move(gradients));
      if (!repeat("apply_gradients", [&] { part.apply_gradients(tree); })) break;
      counts_.add("step");
    }
    --training_;
  }

  /// Makes a call until nothing throws in it. False if the engine has failed.
  bool repeat(const std::string& name, const std::function<void()>& call) {
    for (;;) {
      try {
        call();
        return true;
      } catch (const std::exception& error) {
        const std::string_view what = error.what();
        if (what.find("the engine failed") != what.npos) return false;
        if (what.find(kThrown) == what.npos) wrong(name + ": " + error.what());
        counts_.add("throw_in_" + name);
      }
    }
  }

  void call_at_random(std::uint64_t seed) {
    Dice dice(seed);
    const std::vector<std::int64_t> ids = {0, 7, kRows - 1};
    std::vector<float> rows(ids.size() * 16);
    while (training_ > 0) {
      const bool usable = [&] {
        switch (dice.below(7)) {
          case 0:
            return repeat("read_rows", [&] { engine_->read_rows("words", ids, rows); });
          case 1:
            return repeat("digest", [&] { engine_->digest(); });
          case 2:
            return repeat("memory", [&] { engine_->memory(); });
          case 3:
            return look_up(dice);
          case 4:
            return repeat("bad look_up", [&] { look_up_wrong_ids(); });
          case 5:
            return dice.one_in(10) ? save() : true;
          default:
            std::this_thread::sleep_for(std::chrono::milliseconds(dice.below(5)));
            return true;
        }
      }();
      if (!usable) return;
    }
  }

  bool look_up(Dice& dice) {
    const StepBatch data(dice.below(1000), 0), other(dice.below(1000), 1);
    const std::vector<Batch> batches = {data.batch(), other.batch()};
    counts_.add("look_up");
    return repeat("look_up", [&] { engine_->look_up(batches, dice.one_in(2)); });
  }

  void look_up_wrong_ids() {
    const std::vector<std::int64_t> ids(kSamples, kRows);
    const std::vector<std::int64_t> splits(kSamples + 1, 0);
    const Batch batch = {Nested<FeatureIds>::list(
                             {FeatureIds(RaggedIds{splits, {}}), FeatureIds(DenseIds{ids, {}})}),
                         {}};
    try {
      engine_->look_up(batch, true);
      wrong("ids beyond the table were looked up");
    } catch (const DataError&) {
    }
  }

  bool save() {
    return repeat("save", [&] {
      try {
        const fs::path step = engine_->save(run_);
        print(fmt::format("saved {}", step_of(step)));
        counts_.add("save");
      } catch (const StateError& error) {
        // The step has been saved before, by this process or by one that was killed since.
        if (std::string_view(error.what()).find("already saved") == std::string_view::npos) throw;
      }
      if (saves_.fetch_add(1) % 2 == 1) run_.keep(2);
    });
  }

  void read_checkpoints() {
    while (training_ > 0) {
      fs::path step;
      try {
        step = find_checkpoint(run_.directory());
        print(fmt::format("file {} {}", step_of(step), digest_checkpoint(step)));
        counts_.add("checkpoint_read");
      } catch (const std::exception& error) {
        // It may be pruned while it is read, but the error has to say so.
        const std::string_view what = error.what();
        const bool is_gone = what.find("was removed") != what.npos || !fs::exists(step);
        if (step.empty() || !is_gone) wrong(std::string("read: ") + error.what());
        counts_.add("checkpoint_gone");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void restore() {
    try {
      const RestoreReport report = engine_->restore(run_.directory());
      for (const std::string& skipped : report.skipped) print("skipped " + skipped);
      counts_.add("restore");
    } catch (const std::exception& error) {
      print(std::string("unreadable: ") + error.what());
      std::_Exit(3);
    }
  }

  bool engine_failed() const {
    try {
      engine_->digest();
      return false;
    } catch (const StateError&) {
      return true;
    }
  }

  static std::int64_t step_of(const fs::path& directory) {
    const std::string name = directory.filename();
    return std::stoll(name.substr(name.rfind('_') + 1));
  }

  const std::uint64_t seed_;
  Dice dice_;
  Thrower rate_, log_, pool_;
  CheckpointRun run_;
  std::optional<Embedding> engine_;
  std::atomic<std::int32_t> training_ = 0;  ///< replicas that still train in this episode
  std::uint64_t thread_ = 0;
  std::atomic<std::int64_t> saves_ = 0;
  Counts counts_;
};

}  // namespace
}  // namespace embertable

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: soak_child RUN SECONDS SEED\n");
    return 2;
  }
  try {
    embertable::Soak soak(argv[1], std::stoull(argv[3]));
    soak.run(std::chrono::seconds(std::stoll(argv[2])));
  } catch (const std::exception& error) {
    embertable::wrong(error.what());
  }
}
