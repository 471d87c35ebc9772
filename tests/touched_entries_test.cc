// What a step costs an entry grows neither with the workers nor with the hosts. The engine's
// sources are compiled here once more so that every basic block that runs reports itself: loops
// over ids count by themselves, whoever writes them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"
#include "engine/engine.h"

namespace {

/// Blocks that one thread has run. The threads of hosts that step together count apart.
struct alignas(64) Count {
  std::uint64_t blocks = 0;
};
std::array<Count, 64> counts;
std::atomic<std::size_t> threads = 0;
thread_local Count& own_count = counts[threads++ % counts.size()];

/// Returns the blocks that all threads have run since the last call. Requires: none steps.
double blocks() {
  std::uint64_t sum = 0;
  for (Count& count : counts) sum += std::exchange(count.blocks, 0);
  return static_cast<double>(sum);
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc();  // NOLINT: the compiler's name
extern "C" void __sanitizer_cov_trace_pc() { ++own_count.blocks; }

namespace embertable {
namespace {

/// Pretends to have a number of workers, which take items in turns, on the calling thread.
class PretendedWorkers final : public Executor {
 public:
  explicit PretendedWorkers(std::int32_t workers) : workers_(workers) {}
  std::int32_t workers() const noexcept override { return workers_; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    for (std::int64_t i = 0; i < items; ++i)
      body({.index = i, .next = -1, .worker = static_cast<std::int32_t>(i % workers_)});
  }

 private:
  std::int32_t workers_;
};

struct Cost {
  double enqueue = 0, forward = 0, backward = 0;
};

/// How the ids of a batch are drawn. kOnce: from so many rows that most are named once.
enum class Ids { kUniform, kThirdIsOne, kOneAlone, kOnce };

struct CountedBatch {
  std::vector<std::int64_t> ids, splits = {0};
  CountedBatch(std::int64_t samples, Ids kind, std::int64_t rows) {
    constexpr std::int64_t kIdsOfSample = 4;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      for (std::int64_t k = 0; k < kIdsOfSample; ++k) {
        const std::uint64_t bits = random_bits(1, 2, 3, static_cast<std::uint64_t>(ids.size()));
        const bool hot = kind == Ids::kOneAlone || (kind == Ids::kThirdIsOne && bits % 10 < 3);
        const auto any = static_cast<std::int64_t>((bits >> 8) % static_cast<std::uint64_t>(rows));
        ids.push_back(hot ? 7 : any);
      }
      splits.push_back(static_cast<std::int64_t>(ids.size()));
    }
  }
};

/// How a step is taken.
struct Way {
  std::int32_t workers = 1;
  std::int32_t replicas = 1;  ///< for each host
  std::int32_t hosts = 1;
  bool accumulates = true;
};

/// Blocks that each part of a steady step runs.
Cost cost_of(const Way& way, std::int64_t samples, Ids kind) {
  const bool once = kind == Ids::kOnce;
  const std::int64_t rows = once ? 1'000'000 : 20'000;
  // A rule without fused forms, so that grouping, sums and tiles are all counted; but rows named
  // once are set apart for a rule that has one. And no second part of 16 columns, which would read
  // the entries of hot rows again, with 8 bytes for each 64 of gradient.
  const Optimizer rule(once ? "sgd" : "momentum", 0.1, {},
                       {.use_gradient_accumulation = way.accumulates});
  const std::int32_t dim = once ? 16 : 12;
  StrategyOptions strategy;
  strategy.hosts = way.hosts;
  strategy.replicas_per_host = way.replicas;
  strategy.executor = std::make_shared<PretendedWorkers>(way.workers);
  const auto feature = [&](const char* name) {
    return FeatureConfig{.table = make_table({.vocabulary_size = rows, .dim = dim, .name = name})};
  };
  Embedding engine(Nested<FeatureConfig>::list({feature("a"), feature("b")}), rule,
                   make_strategy(strategy));
  const CountedBatch counted(samples, kind, rows);
  const RaggedIds ids{counted.splits, counted.ids};
  const Batch batch{Nested<FeatureIds>::list({FeatureIds(ids), FeatureIds(ids)})};
  const std::vector<float> ones(samples * dim, 1);
  const std::vector gradients(way.hosts * way.replicas,
                              Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, {}}}));
  Cost cost;
  for (int step = 0; step < 4; ++step) {  // the last one counts
    blocks();
    engine.enqueue(batch);
    cost.enqueue = blocks();
    engine.dequeue();
    cost.forward = blocks();
    engine.apply_gradients(gradients);
    cost.backward = blocks();
  }
  const std::int64_t apart = engine::engine_of(engine).runner.entries_set_apart(0);
  EXPECT_EQ(apart > std::ssize(counted.ids) / 2, once) << apart;
  return cost;
}

/// Cost of one more entry: what is paid once for a step, worker or host does not count.
Cost cost_of_entry(const Way& way, Ids kind) {
  constexpr std::int64_t kFew = 4096, kMany = 12288;
  const Cost few = cost_of(way, kFew, kind), many = cost_of(way, kMany, kind);
  const auto entries = static_cast<double>((kMany - kFew) * 4 * 2 * way.replicas * way.hosts);
  return {(many.enqueue - few.enqueue) / entries, (many.forward - few.forward) / entries,
          (many.backward - few.backward) / entries};
}

/// More workers or hosts may cost an entry a seventh more, and half a block: their buckets are
/// smaller, and each has costs of its own. A pass of each over all entries would cost a block each.
void expect_same_cost(const Way& few_ways, const Way& many_ways, Ids kind) {
  const Cost few = cost_of_entry(few_ways, kind), many = cost_of_entry(many_ways, kind);
  const auto check = [&](const char* stage, double apart, double together) {
    std::printf("%-8s %6.2f blocks an entry with %d workers and %d hosts, %6.2f with %d and %d\n",
                stage, apart, few_ways.workers, few_ways.hosts, together, many_ways.workers,
                many_ways.hosts);
    EXPECT_GT(apart, 0.2) << stage << ": is this code still counted?";
    EXPECT_LT(together, apart * 1.15 + 0.5) << stage;
  };
  check("enqueue", few.enqueue, many.enqueue);
  check("forward", few.forward, many.forward);
  check("backward", few.backward, many.backward);
}

TEST(TouchedEntries, CostTheSameForAnyNumberOfWorkers) {
  expect_same_cost({.workers = 1}, {.workers = 64}, Ids::kUniform);
}
TEST(TouchedEntries, CostTheSameWhereMostRowsAreNamedOnce) {
  expect_same_cost({.workers = 1}, {.workers = 64}, Ids::kOnce);
}
TEST(TouchedEntries, CostTheSameWithSeveralReplicas) {
  expect_same_cost({.workers = 1, .replicas = 3}, {.workers = 64, .replicas = 3}, Ids::kUniform);
}

// One worker has no need to share hot rows, and one bucket needs no counters: so against two.
TEST(TouchedEntries, CostTheSameWhereOneIdIsHot) {
  expect_same_cost({.workers = 2}, {.workers = 64}, Ids::kThirdIsOne);
}
TEST(TouchedEntries, CostTheSameWhereOneIdIsAlone) {
  expect_same_cost({.workers = 2}, {.workers = 64}, Ids::kOneAlone);
}

// Most entries are for rows of other hosts, whether these are 7 or 15.
TEST(TouchedEntries, CostTheSameForAnyNumberOfHostsWithoutAccumulation) {
  expect_same_cost({.hosts = 8, .accumulates = false}, {.hosts = 16, .accumulates = false},
                   Ids::kUniform);
}

}  // namespace
}  // namespace embertable
