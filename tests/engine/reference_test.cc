// Random engines against a slow reference in double, and against themselves: same bits for every
// number of hosts and threads, every order of work, both roads of a step.
#include <gtest/gtest.h>

#include <cmath>

#include "testing/engine/scene.h"
#include "testing/executor.h"
#include "testing/sanitized.h"

namespace embertable {
namespace {

using namespace engine_fixture;  // NOLINT: the vocabulary of these tests
using D = std::vector<double>;

/// a_k of the entries of one output row: the activation is the sum of a_k * row, and so is each
/// row's gradient.
D factors(Combiner combiner, const std::vector<Entry>& entries) {
  double denominator = combiner == Combiner::kSum ? 1 : 0;
  for (const Entry& entry : entries) {
    if (combiner == Combiner::kMean) denominator += entry.weight;
    if (combiner == Combiner::kSqrtN) denominator += entry.weight * entry.weight;
  }
  if (combiner == Combiner::kSqrtN) denominator = std::sqrt(denominator);
  D all;
  for (const Entry& entry : entries)
    all.push_back(denominator == 0 ? 0 : entry.weight / denominator);
  return all;
}

/// The forward of one feature, and by element what its terms add up to without their signs.
struct Forward {
  D values, magnitude;
};
Forward reference_forward(const F& rows, std::size_t dim, Combiner combiner, const Input& input) {
  Forward result;
  for (const std::vector<Entry>& entries : input.entries) {
    const D a = factors(combiner, entries);
    for (std::size_t c = 0; c < dim; ++c) {
      double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < entries.size(); ++k) {
        const double term =
            a[k] * static_cast<double>(rows[static_cast<std::size_t>(entries[k].id) * dim + c]);
        sum += term;
        magnitude += std::abs(term);
      }
      result.values.push_back(sum);
      result.magnitude.push_back(magnitude);
    }
  }
  return result;
}

/// The gradients of one row's steps: one, or without accumulation one for each entry.
using RowSteps = std::vector<D>;

/// Adds a feature's part of G to the gradients of each row.
void reference_backward(std::size_t dim, Combiner combiner, bool accumulate, const Input& input,
                        const F& gradient, std::vector<RowSteps>& rows) {
  for (std::size_t output = 0; output < input.entries.size(); ++output) {
    const std::vector<Entry>& entries = input.entries[output];
    const D a = factors(combiner, entries);
    for (std::size_t k = 0; k < entries.size(); ++k) {
      RowSteps& steps = rows[entries[k].id];
      if (steps.empty() || !accumulate) steps.emplace_back(dim);  // with a null gradient too
      D& sum = steps.back();
      if (gradient.empty()) continue;
      for (std::size_t c = 0; c < dim; ++c)
        sum[c] += a[k] * static_cast<double>(gradient[output * dim + c]);
    }
  }
}

void clip(std::span<double> values, const std::optional<double>& low,
          const std::optional<double>& high) {
  for (double& value : values) {
    if (low) value = std::max(value, *low);
    if (high) value = std::min(value, *high);
  }
}

/// One row and its slot after one step.
void reference_update(const Optimizer& optimizer, D g, std::span<double> row,
                      std::span<double> slot) {
  const double rate = optimizer.learning_rate().constant();
  const OptimizerOptions& options = optimizer.options();
  clip(g, options.clip_gradient_min, options.clip_gradient_max);
  const double decay = options.weight_decay_factor *
                       (options.multiply_weight_decay_factor_by_learning_rate ? rate : 1);
  for (double& w : row) w -= decay * w;
  const std::size_t dim = row.size();
  if (optimizer.rule() == "sgd") {
    for (std::size_t c = 0; c < dim; ++c) row[c] -= rate * g[c];
  } else if (optimizer.rule() == "adagrad") {
    for (std::size_t c = 0; c < dim; ++c) {
      slot[c] += g[c] * g[c];
      row[c] -= rate * g[c] / std::sqrt(slot[c]);
    }
  } else {
    double squares = 0;
    for (const double v : g) squares += v * v;
    slot[0] += squares / static_cast<double>(dim);
    for (std::size_t c = 0; c < dim; ++c)
      row[c] -= rate * g[c] / (std::sqrt(slot[0]) + optimizer.parameter("epsilon"));
  }
  clip(row, options.clip_weight_min, options.clip_weight_max);
}

std::int64_t slot_width(const Scene::Table& table) {
  const std::string& rule = table.optimizer.rule();
  return rule == "sgd" ? 0 : rule == "adagrad" ? table.config->dim : 1;
}

/// One table's rows or slots before and after a step, against what they should be.
void expect_rows(const F& before, const F& after, const D& expected, std::int64_t width,
                 const std::vector<RowSteps>& touched) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (touched[i / static_cast<std::size_t>(width)].empty()) {
      ASSERT_EQ(after[i], before[i]) << "element " << i << " of a row that no entry names";
    } else {
      ASSERT_NEAR(after[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }
}

/// One step of the engine, its forward and update compared with the reference's on the same rows.
void compare_step(Embedding& engine, const Scene& scene, int step) {
  struct State {
    F rows, slots;
  };
  const auto read = [&] {
    std::vector<State> all;
    for (const Scene::Table& table : scene.tables) {
      const std::int64_t rows = table.config->vocabulary_size;
      State& state = all.emplace_back();
      state.rows = variable(engine, *table.config->name, rows, table.config->dim);
      if (slot_width(table) > 0)
        state.slots =
            variable(engine, *table.config->name + "/accumulators", rows, slot_width(table));
    }
    return all;
  };

  const std::size_t s = static_cast<std::size_t>(step);
  engine.enqueue(scene.batches[s]);
  const std::vector<State> before = read();
  const Activations activations = engine.dequeue();
  std::vector<std::vector<RowSteps>> sums;
  for (const Scene::Table& table : scene.tables) sums.emplace_back(table.config->vocabulary_size);

  for (std::int32_t r = 0; r < scene.replicas; ++r) {
    for (std::size_t f = 0; f < scene.features.size(); ++f) {
      SCOPED_TRACE("feature " + std::to_string(f) + ", replica " + std::to_string(r));
      const std::size_t t = scene.features[f].table;
      const TableConfig& table = *scene.tables[t].config;
      const Input& input = scene.steps[s][r][f];
      const std::size_t dim = table.dim;
      const Forward expected = reference_forward(before[t].rows, dim, table.combiner, input);
      const Activation got = activations(static_cast<std::int64_t>(f), r);
      ASSERT_EQ(got.shape, scene.features[f].outputs.append(table.dim));
      ASSERT_EQ(got.values.size(), expected.values.size());
      for (std::size_t i = 0; i < expected.values.size(); ++i) {
        ASSERT_NEAR(got.values[i], expected.values[i], 1e-5 * expected.magnitude[i])
            << "element " << i;
      }
      reference_backward(
          dim, table.combiner, scene.tables[t].optimizer.options().use_gradient_accumulation, input,
          scene.gradient(step, r, static_cast<std::int64_t>(f), got.values, 0), sums[t]);
    }
  }
  engine.apply_gradients(
      Gradients(activations, [&](const Activation& a, std::int64_t f, std::int32_t r) {
        return scene.gradient(step, r, f, a.values, 0);
      }).all());

  const std::vector<State> after = read();
  for (std::size_t t = 0; t < scene.tables.size(); ++t) {
    SCOPED_TRACE("table " + std::to_string(t) + " " + scene.tables[t].optimizer.to_string());
    const std::int64_t dim = scene.tables[t].config->dim, width = slot_width(scene.tables[t]);
    D rows(before[t].rows.begin(), before[t].rows.end()),
        slots(before[t].slots.begin(), before[t].slots.end());
    for (std::size_t id = 0; id < sums[t].size(); ++id) {
      for (const D& gradient : sums[t][id]) {
        reference_update(scene.tables[t].optimizer, gradient,
                         std::span(rows).subspan(id * dim, dim),
                         std::span(slots).subspan(id * width, width));
      }
    }
    expect_rows(before[t].rows, after[t].rows, rows, dim, sums[t]);
    if (width > 0) expect_rows(before[t].slots, after[t].slots, slots, width, sums[t]);
  }
}

TEST(EngineReference, RandomEnginesAgreeWithSumsInDouble) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    Dice dice(mix_seeds(seed, i));
    const Scene scene(mix_seeds(seed, i), {});
    StrategyOptions strategy;
    do {
      strategy.hosts = dice.pick({1, 1, 2, 4});
    } while (scene.replicas % strategy.hosts != 0);
    strategy.sharding = dice.pick({Sharding::kDiv, Sharding::kMod});
    strategy.executor = make_inline_executor();
    EmbeddingOptions options;
    options.tuning.bucket_bytes = dice.pick({0, 1, 256});
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i) +
                 ": " + std::to_string(scene.replicas) + " replicas, " +
                 std::to_string(strategy.hosts) + " hosts");
    Embedding engine = scene.engine(strategy, options);
    for (int step = 0; step < Scene::kSteps; ++step) compare_step(engine, scene, step);
  }
}

/// Activations of every step and the digest after it.
struct Bits {
  std::vector<F> activations;
  std::vector<std::string> digests;
  std::int64_t most_buckets = 0;
  friend bool operator==(const Bits& a, const Bits& b) {
    return a.activations == b.activations && a.digests == b.digests;
  }
};

void keep(Bits& bits, const Activations& activations) {
  for (std::int32_t r = 0; r < activations.replicas(); ++r) {
    for (std::int64_t f = 0; f < activations.features(); ++f)
      bits.activations.push_back(values(activations, f, r));
  }
}

auto gradients_of(const Scene& scene, int step) {
  return [&scene, step](const Activation& a, std::int64_t f, std::int32_t r) {
    return scene.gradient(step, r, f, a.values, 0.125f);
  };
}

EmbeddingOptions finely_cut() {
  EmbeddingOptions options;
  options.tuning = {.bucket_bytes = 512, .inline_floats = 0};
  return options;
}

Bits run(const Scene& scene, const StrategyOptions& strategy,
         const EmbeddingOptions& options = finely_cut()) {
  Embedding engine = scene.engine(strategy, options);
  Bits bits;
  for (int step = 0; step < Scene::kSteps; ++step) {
    engine.enqueue(scene.batches[step]);
    const Activations activations = engine.dequeue();
    keep(bits, activations);
    engine.apply_gradients(Gradients(activations, gradients_of(scene, step)).all());
    const StepStatistics statistics = engine.last_step();
    for (const StepStatistics::Table& table : statistics.tables)
      bits.most_buckets = std::max(bits.most_buckets, table.buckets);
    bits.digests.push_back(engine.digest());
  }
  return bits;
}

std::vector<std::shared_ptr<Executor>> executors(std::uint64_t seed) {
  std::vector<std::shared_ptr<Executor>> all = {make_inline_executor()};
  for (const std::int32_t threads : {1, 2, 3, 7}) all.push_back(make_thread_pool(threads));
  for (const std::int32_t workers : {1, 3, 16})
    all.push_back(std::make_shared<TestExecutor>(mix_seeds(seed, 7), workers));
  return all;
}

TEST(EngineReference, Config87_NeitherThreadsNorHostsNorTheOrderOfWorkShow) {
  const std::uint64_t seed = test_seed();
  const auto executor = executors(seed);
  std::int64_t finely_cut_scenes = 0;
  constexpr std::uint64_t kScenes = kSanitized ? 6 : 12;
  for (std::uint64_t i = 0; i < kScenes; ++i) {
    // The last ones cross the border of a piece of a row's gradient, 4096 output rows.
    const SceneLimits limits = {.rows = 900,
                                .outputs = i + kScenes / 6 < kScenes ? 80 : 9000,
                                .columns = 5,
                                .replicas = 4,
                                .any_rule = true,
                                .bfloat16 = i % 3 == 2 ? 60 : 0};
    const Scene scene(mix_seeds(seed, 1000 + i), limits);
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i));
    const Bits expected =
        run(scene, {.replicas_per_host = 4, .executor = make_inline_executor()}, {});
    for (std::size_t e = 0; e < executor.size(); ++e) {
      const Bits got = run(scene, {.replicas_per_host = 4, .executor = executor[e]});
      EXPECT_EQ(got, expected) << "executor " << e;
      finely_cut_scenes += got.most_buckets >= 8 ? 1 : 0;
    }
    for (const std::int32_t hosts : {2, 4}) {
      for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
        for (const std::size_t e : {0u, 3u, 6u}) {
          EXPECT_EQ(run(scene, {.hosts = hosts, .sharding = sharding, .executor = executor[e]}),
                    expected)
              << hosts << " hosts, sharding " << static_cast<int>(sharding) << ", executor " << e;
        }
      }
    }
  }
  // The number depends on the seed: three runs of four or so, and those of one scene at least.
  EXPECT_GE(finely_cut_scenes, static_cast<std::int64_t>(executor.size()));
}

/// The scene's batches over and over; gradients are of the forwards.
constexpr int kLongRun = 6;

Bits run_queue(const Scene& scene, bool pipelined, std::int32_t hosts) {
  EmbeddingOptions options = finely_cut();
  options.pipeline_execution_with_tensor_core = pipelined;
  Embedding engine = scene.engine({.hosts = hosts, .executor = make_inline_executor()}, options);
  Bits bits;
  for (int step = 0; step < kLongRun; ++step) {
    engine.enqueue(scene.batches[step % Scene::kSteps]);
    const Activations activations = engine.dequeue();
    keep(bits, activations);
    engine.apply_gradients(Gradients(activations, gradients_of(scene, step)).all());
  }
  bits.digests.push_back(engine.digest());
  return bits;
}

/// The same through tokens, each applied `delay` forwards after its own: 0 as not pipelined, 1 as
/// pipelined.
Bits run_tokens(const Scene& scene, int delay) {
  Embedding engine = scene.engine({.executor = make_inline_executor()});
  Bits bits;
  std::deque<LookupResult> waiting;
  std::deque<int> numbers;
  const auto apply = [&] {
    LookupResult& first = waiting.front();
    engine.apply_gradients(
        std::move(first.token),
        Gradients(first.activations, gradients_of(scene, numbers.front())).all());
    waiting.pop_front();
    numbers.pop_front();
  };
  for (int step = 0; step < kLongRun; ++step) {
    waiting.push_back(engine.look_up(scene.batches[step % Scene::kSteps]));
    numbers.push_back(step);
    keep(bits, waiting.back().activations);
    if (static_cast<int>(waiting.size()) > delay) apply();
  }
  while (!waiting.empty()) apply();
  bits.digests.push_back(engine.digest());
  return bits;
}

TEST(EngineReference, PipelinedOrNotIsOnlyAnOrderOfForwardsAndUpdates) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t i = 0; i < 10; ++i) {
    const Scene scene(mix_seeds(seed, 2000 + i),
                      {.replicas = 2, .any_rule = true, .bfloat16 = i % 3 == 2 ? 60 : 0});
    SCOPED_TRACE("EMBERTABLE_TEST_SEED=" + std::to_string(seed) + ", engine " + std::to_string(i));
    for (const std::int32_t hosts : {1, 2}) {
      EXPECT_EQ(run_queue(scene, false, hosts), run_tokens(scene, 0));
      EXPECT_EQ(run_queue(scene, true, hosts), run_tokens(scene, 1));
    }
  }
}

}  // namespace
}  // namespace embertable
