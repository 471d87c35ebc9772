// What a step costs an entry does not grow with the workers. The engine's sources are compiled
// here once more so that every basic block that runs reports itself: loops over ids count by
// themselves, whoever writes them.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"
#include "engine/engine.h"

namespace {
std::uint64_t blocks = 0;
}  // namespace

extern "C" void __sanitizer_cov_trace_pc();  // NOLINT: the compiler's name
extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

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

/// Blocks that each part of a steady step runs.
Cost cost_of(std::int32_t workers, std::int64_t samples, Ids kind, std::int32_t replicas) {
  const bool once = kind == Ids::kOnce;
  const std::int64_t rows = once ? 1'000'000 : 20'000;
  // A rule without fused forms, so that grouping, sums and tiles are all counted; but rows named
  // once are set apart for a rule that has one. And no second part of 16 columns, which would read
  // the entries of hot rows again, with 8 bytes for each 64 of gradient.
  const Optimizer rule(once ? "sgd" : "momentum", 0.1);
  const std::int32_t dim = once ? 16 : 12;
  StrategyOptions strategy;
  strategy.replicas_per_host = replicas;
  strategy.executor = std::make_shared<PretendedWorkers>(workers);
  const auto feature = [&](const char* name) {
    return FeatureConfig{.table = make_table({.vocabulary_size = rows, .dim = dim, .name = name})};
  };
  Embedding engine(Nested<FeatureConfig>::list({feature("a"), feature("b")}), rule,
                   make_strategy(strategy));
  const CountedBatch counted(samples, kind, rows);
  const RaggedIds ids{counted.splits, counted.ids};
  const Batch batch{Nested<FeatureIds>::list({FeatureIds(ids), FeatureIds(ids)})};
  const std::vector<float> ones(samples * dim, 1);
  const std::vector gradients(replicas,
                              Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, {}}}));
  Cost cost;
  for (int step = 0; step < 4; ++step) {  // the last one counts
    blocks = 0;
    engine.enqueue(batch);
    cost.enqueue = static_cast<double>(blocks);
    blocks = 0;
    engine.dequeue();
    cost.forward = static_cast<double>(blocks);
    blocks = 0;
    engine.apply_gradients(gradients);
    cost.backward = static_cast<double>(blocks);
  }
  const std::int64_t apart = engine::engine_of(engine).runner.entries_set_apart(0);
  EXPECT_EQ(apart > std::ssize(counted.ids) / 2, once) << apart;
  return cost;
}

/// Cost of one more entry: what is paid once for a step or a worker does not count.
Cost cost_of_entry(std::int32_t workers, Ids kind, std::int32_t replicas) {
  constexpr std::int64_t kFew = 4096, kMany = 12288;
  const Cost few = cost_of(workers, kFew, kind, replicas),
             many = cost_of(workers, kMany, kind, replicas);
  const auto entries = static_cast<double>((kMany - kFew) * 4 * 2 * replicas);
  return {(many.enqueue - few.enqueue) / entries, (many.forward - few.forward) / entries,
          (many.backward - few.backward) / entries};
}

/// More workers may cost an entry a seventh more, and half a block: their buckets are smaller, and
/// each has costs of its own. A pass of every worker over all entries would cost 64 blocks.
void expect_same_cost(std::int32_t few_workers, Ids kind, std::int32_t replicas) {
  const Cost few = cost_of_entry(few_workers, kind, replicas),
             many = cost_of_entry(64, kind, replicas);
  const auto check = [&](const char* stage, double apart, double together) {
    std::printf("%-8s %6.2f blocks an entry where they are %d, %6.2f where they are 64\n", stage,
                apart, few_workers, together);
    EXPECT_GT(apart, 0.2) << stage << ": is this code still counted?";
    EXPECT_LT(together, apart * 1.15 + 0.5) << stage;
  };
  check("enqueue", few.enqueue, many.enqueue);
  check("forward", few.forward, many.forward);
  check("backward", few.backward, many.backward);
}

TEST(TouchedEntries, CostTheSameForAnyNumberOfWorkers) { expect_same_cost(1, Ids::kUniform, 1); }
TEST(TouchedEntries, CostTheSameWhereMostRowsAreNamedOnce) { expect_same_cost(1, Ids::kOnce, 1); }
TEST(TouchedEntries, CostTheSameWithSeveralReplicas) { expect_same_cost(1, Ids::kUniform, 3); }

// One worker has no need to share hot rows, and one bucket needs no counters: so against two.
TEST(TouchedEntries, CostTheSameWhereOneIdIsHot) { expect_same_cost(2, Ids::kThirdIsOne, 1); }
TEST(TouchedEntries, CostTheSameWhereOneIdIsAlone) { expect_same_cost(2, Ids::kOneAlone, 1); }

}  // namespace
}  // namespace embertable
