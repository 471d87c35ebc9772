// After a few steps a step allocates nothing: counted through malloc, mmap and page faults.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/random.h"
#include "embertable/embertable.h"
#include "embertable/tensorflow/v1.h"
#include "engine/engine.h"

namespace {
std::atomic<std::int64_t> mallocs = 0;
std::atomic<std::int64_t> mmaps = 0;
}  // namespace

extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's names
void* __libc_calloc(std::size_t n, std::size_t size);            // NOLINT
void* __libc_realloc(void* old, std::size_t size);               // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT

void* malloc(std::size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** to, std::size_t alignment, std::size_t size) {
  void* const memory = memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *to = memory;
  return 0;
}
void* mmap(void* address, std::size_t length, int protection, int flags, int fd,
           off_t offset) noexcept {
  mmaps.fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
}

namespace embertable {
namespace {

std::int64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

/// Ragged, sparse and dense ids of 512 samples, with weights on the sparse ones.
struct OwnBatch {
  std::vector<std::int64_t> ragged, splits = {0}, sparse, indices;
  std::vector<std::int32_t> dense;
  std::vector<double> weights;
  std::optional<Batch> batch;

  explicit OwnBatch(std::uint64_t seed) {
    std::uint64_t draw = 0;
    const auto below = [&](std::uint64_t n) {
      return static_cast<std::int64_t>(random_bits(seed, 0, 0, draw++) % n);
    };
    for (std::int64_t sample = 0; sample < 512; ++sample) {
      for (std::int64_t i = below(9); i > 0; --i) ragged.push_back(below(5000));
      splits.push_back(static_cast<std::int64_t>(ragged.size()));
      for (std::int64_t column = 0; column < below(4); ++column) {
        indices.insert(indices.end(), {sample, column});
        sparse.push_back(below(3000));
        weights.push_back(0.5 + static_cast<double>(below(8)));
      }
      dense.push_back(static_cast<std::int32_t>(below(100)));
    }
    batch.emplace(
        Batch{Nested<FeatureIds>::list({FeatureIds(RaggedIds{splits, ragged}),
                                        FeatureIds(SparseIds{indices, sparse, Shape{512, 4}}),
                                        FeatureIds(DenseIds{dense, {}})}),
              Nested<FeatureWeights>::list(
                  {FeatureWeights(), FeatureWeights(SparseWeights{weights}), FeatureWeights()})});
  }
};

/// After 40 steps 100 more allocate nothing.
template <class Step>
void expect_steady(Step step) {
  std::size_t i = 0;
  for (; i < 40; ++i) step(i);
  const std::int64_t mallocs_before = mallocs, mmaps_before = mmaps, faults_before = page_faults();
  for (; i < 140; ++i) step(i);
  EXPECT_EQ(mallocs - mallocs_before, 0);
  EXPECT_EQ(mmaps - mmaps_before, 0);
  EXPECT_LE(page_faults() - faults_before, 2) << "of the kernel's own making, not of 100 steps";
}

/// How a program takes its steps.
struct Form {
  std::int32_t hosts = 1;
  std::int32_t replicas_per_host = 1;
  std::int32_t cores = 1;  ///< cores of a replica; several are fed by device
  bool pipelined = false;
  bool by_tokens = false;         ///< look_up instead of enqueue and dequeue
  bool lacks_a_gradient = false;  ///< the last feature's is null, the first one's of doubles
  Optimizer optimizer = Optimizer("rowwise_adagrad", 0.1);
  GradientPolicy gradient_policy = GradientPolicy::kAllow;
};

void steady_steps_allocate_nothing(const Form& form) {
  const std::int32_t replicas = form.hosts * form.replicas_per_host;
  const auto table = [](std::int64_t rows, std::int32_t dim, Combiner combiner, std::string name) {
    return FeatureConfig{.table = make_table({.vocabulary_size = rows,
                                              .dim = dim,
                                              .initializer = {},
                                              .optimizer = {},
                                              .combiner = combiner,
                                              .name = std::move(name)})};
  };
  StrategyOptions strategy;
  strategy.hosts = form.hosts;
  strategy.replicas_per_host = form.replicas_per_host;
  strategy.cores_per_replica = form.cores;
  strategy.executor = make_thread_pool(2);
  EmbeddingOptions options;
  options.pipeline_execution_with_tensor_core = form.pipelined;
  options.gradient_policy = form.gradient_policy;
  options.tuning.inline_floats = 0;
  Embedding engine(Nested<FeatureConfig>::list({table(5000, 32, Combiner::kSum, "a"),
                                                table(3000, 20, Combiner::kMean, "b"),
                                                table(100, 16, Combiner::kSum, "c")}),
                   form.optimizer, make_strategy(strategy), options);
  std::vector<OwnBatch> owned;
  for (std::uint64_t i = 0; i < 4; ++i) owned.emplace_back(i);
  std::vector<std::vector<Nested<Gradient>>> gradients;
  std::vector<std::vector<float>> storage;
  storage.reserve(16);
  std::vector<double> doubles;
  std::vector<EnqueueOptions> by_device;
  for (std::int32_t core = 0; core < replicas * form.cores; ++core)
    by_device.push_back({.device = "TPU:" + std::to_string(core)});

  const auto step = [&](std::size_t i) {
    LookupResult looked_up;
    if (form.by_tokens) {
      looked_up = engine.look_up(*owned[i % owned.size()].batch);
    } else {
      const Batch& batch = *owned[i % owned.size()].batch;
      for (const EnqueueOptions& device : by_device) {
        if (form.cores > 1) engine.enqueue(batch, device);
      }
      if (form.cores == 1) engine.enqueue(batch);
      looked_up.activations = engine.dequeue();
    }
    const Activations& activations = looked_up.activations;
    if (gradients.empty()) {
      std::vector<Nested<Gradient>> all;
      std::vector<Gradient> leaves;
      for (std::int64_t f = 0; f < 3; ++f) {
        storage.emplace_back(activations(f).values.size(), 0.25f);
        leaves.push_back({storage.back(), {}});
      }
      if (form.lacks_a_gradient) {
        doubles.assign(storage[0].begin(), storage[0].end());
        leaves = {{doubles, {}}, leaves[1], Gradient::none()};
      }
      for (std::int32_t r = 0; r < replicas; ++r) all.emplace_back(activations.structure(), leaves);
      gradients.push_back(std::move(all));
    }
    if (form.by_tokens) {
      engine.apply_gradients(std::move(looked_up.token), gradients.front());
    } else {
      engine.apply_gradients(gradients.front());
    }
  };
  expect_steady(step);
}

/// What the other tests rely on.
TEST(SteadyStep, EveryWayToAllocateIsCounted) {
  struct alignas(64) Line {
    char bytes[64];
  };
  const std::int64_t before = mallocs;
  void* memory[] = {std::malloc(1),           std::calloc(1, 1),
                    std::realloc(nullptr, 1), std::aligned_alloc(64, 64),
                    memalign(64, 64),         nullptr};
  ASSERT_EQ(posix_memalign(&memory[5], 64, 64), 0);
  EXPECT_EQ(mallocs - before, 6);
  for (void* each : memory) std::free(each);
  Line* volatile const line = new Line;
  EXPECT_EQ(mallocs - before, 7);
  delete line;
}

TEST(SteadyStep, AllocatesNothing) { steady_steps_allocate_nothing({}); }
TEST(SteadyStep, AllocatesNothingWithTwoReplicas) {
  steady_steps_allocate_nothing({.replicas_per_host = 2});
}
TEST(SteadyStep, AllocatesNothingWithSeveralCores) {
  steady_steps_allocate_nothing({.cores = 2});
  steady_steps_allocate_nothing({.hosts = 2, .replicas_per_host = 2, .cores = 2});
}
TEST(SteadyStep, AllocatesNothingWhereCoresShareABatch) {
  StrategyOptions strategy;
  strategy.cores_per_replica = 4;
  strategy.executor = make_thread_pool(2);
  const FeatureConfig feature{.table = make_table({.vocabulary_size = 3000,
                                                   .dim = 8,
                                                   .initializer = {},
                                                   .optimizer = {},
                                                   .combiner = Combiner::kMean,
                                                   .name = "t"})};
  Embedding engine(Nested<FeatureConfig>::list({feature, feature}), Optimizer("sgd", 0.1),
                   make_strategy(strategy));
  const OwnBatch owned(1);
  const Batch batch = {
      Nested<FeatureIds>::list({FeatureIds(SparseIds{owned.indices, owned.sparse, Shape{512, 4}}),
                                FeatureIds(DenseIds{owned.dense, {}})}),
      Nested<FeatureWeights>::list(
          {FeatureWeights(SparseWeights{owned.weights}), FeatureWeights()})};
  const std::vector<float> ones(512 * 8, 1);
  const auto gradients =
      Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, Shape{512, 8}}});
  expect_steady([&](std::size_t) {
    engine.enqueue(batch);
    engine.dequeue();
    engine.apply_gradients(gradients);
  });
}
TEST(SteadyStep, AllocatesNothingWithManyHosts) {
  steady_steps_allocate_nothing({.hosts = 2});
  steady_steps_allocate_nothing({.hosts = 4});
  steady_steps_allocate_nothing({.hosts = 2, .replicas_per_host = 2, .pipelined = true});
  steady_steps_allocate_nothing({.hosts = 4, .by_tokens = true});
  steady_steps_allocate_nothing({.hosts = 2, .lacks_a_gradient = true});
}
TEST(SteadyStep, AllocatesNothingPipelined) { steady_steps_allocate_nothing({.pipelined = true}); }
TEST(SteadyStep, AllocatesNothingByTokens) { steady_steps_allocate_nothing({.by_tokens = true}); }
TEST(SteadyStep, AllocatesNothingForGradientsThatAreAbsentOrDoubles) {
  steady_steps_allocate_nothing({.lacks_a_gradient = true});
  steady_steps_allocate_nothing(
      {.replicas_per_host = 2, .pipelined = true, .lacks_a_gradient = true});
}
TEST(SteadyStep, AllocatesNothingWithoutAccumulation) {
  const Optimizer optimizer("rowwise_adagrad", 0.1, {}, {.use_gradient_accumulation = false});
  steady_steps_allocate_nothing({.optimizer = optimizer});
  steady_steps_allocate_nothing({.hosts = 2, .replicas_per_host = 2, .optimizer = optimizer});
}
TEST(SteadyStep, AllocatesNothingWhereEveryRowSteps) {
  CustomRule rule;
  rule.function = CustomRule::Tiles([](const CustomTile& tile) { tile.row[0][0] += 1; });
  rule.steps_every_row = true;
  steady_steps_allocate_nothing({.optimizer = Optimizer::custom(rule)});
  steady_steps_allocate_nothing({.hosts = 2, .optimizer = Optimizer::custom(rule)});
}
TEST(SteadyStep, AllocatesNothingWhereGradientsAreCheckedAndHandedOn) {
  steady_steps_allocate_nothing(
      {.optimizer = Optimizer("none", 0), .gradient_policy = GradientPolicy::kError});
}

TEST(SteadyStep, AllocatesNothingWhereIdsAreHot) {
  StrategyOptions strategy;
  strategy.executor = make_thread_pool(2);
  const TablePtr table = make_table({.vocabulary_size = 50000, .dim = 16, .name = "a"});
  const FeatureConfig feature{.table = table};
  Embedding engine(Nested<FeatureConfig>::list({feature, feature}), Optimizer("adagrad", 0.1),
                   make_strategy(strategy));
  std::vector<std::int64_t> one(20000, 7), third;
  for (std::int64_t i = 0; i < 20000; ++i) third.push_back(i % 3 == 0 ? 7 : i * 17 % 50000);
  const auto batch = [](const std::vector<std::int64_t>& ids) {
    return Batch{
        Nested<FeatureIds>::list({FeatureIds(DenseIds{ids, {}}), FeatureIds(DenseIds{ids, {}})})};
  };
  const Batch alone = batch(one), mixed = batch(third);
  const std::vector<float> ones(20000 * 16, 1);
  const auto gradients = Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, {}}});
  expect_steady([&](std::size_t i) {
    engine.enqueue(i % 2 == 0 ? alone : mixed);
    engine.dequeue();
    engine.apply_gradients(gradients);
  });
}

/// Batches around the share from which on a row counts as hot, an eighth of a bucket's entries:
/// what a sample finds changes from step to step, from no row to eight.
std::vector<std::vector<std::int64_t>> flickering_ids(std::int64_t rows, std::int64_t entries) {
  std::vector<std::vector<std::int64_t>> batches;
  for (std::uint64_t batch = 0; batch < 35; ++batch) {
    std::uint64_t draw = 0;
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random_bits(batch, 3, 1, draw++) %
                                       static_cast<std::uint64_t>(n));
    };
    const std::int64_t hot_rows = below(9), first = below(rows - 8);
    const std::int64_t hot_share = hot_rows * (9 + below(7));  // in 100
    std::vector<std::int64_t>& ids = batches.emplace_back();
    for (std::int64_t i = 0; i < entries; ++i)
      ids.push_back(below(100) < hot_share ? first + below(hot_rows) : below(rows));
  }
  return batches;
}

/// Two tables, whose rows are hot in other steps each.
void flickering_steps_allocate_nothing(std::int32_t hosts, std::int32_t workers,
                                       const Optimizer& optimizer) {
  constexpr std::int64_t kEntries = 6000, kRows = 3000;
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.executor = make_thread_pool(workers);
  const FeatureConfig narrow{
      .table = make_table({.vocabulary_size = kRows, .dim = 16, .name = "narrow"})};
  const FeatureConfig wide{.table =
                               make_table({.vocabulary_size = kRows, .dim = 40, .name = "wide"})};
  Embedding engine(Nested<FeatureConfig>::list({narrow, wide}), optimizer, make_strategy(strategy));
  const std::vector<std::vector<std::int64_t>> ids = flickering_ids(kRows, kEntries);
  std::vector<std::vector<Batch>> batches;
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const Batch batch{Nested<FeatureIds>::list(
        {FeatureIds(DenseIds{ids[b], {}}), FeatureIds(DenseIds{ids[(b + 7) % ids.size()], {}})})};
    batches.emplace_back(hosts, batch);
  }
  const std::vector<float> ones(static_cast<std::size_t>(kEntries) * 40, 1);
  const auto gradient = [&](std::size_t dim) {
    return Gradient{std::span(ones).first(static_cast<std::size_t>(kEntries) * dim), {}};
  };
  const std::vector gradients(hosts, Nested<Gradient>::list({gradient(16), gradient(40)}));
  expect_steady([&](std::size_t i) {
    engine.enqueue(batches[i % batches.size()]);
    engine.dequeue();
    engine.apply_gradients(gradients);
  });
}

TEST(SteadyStep, AllocatesNothingWhereRowsAreHotInOneStepAndNotInTheNext) {
  flickering_steps_allocate_nothing(1, 2, Optimizer("adagrad", 0.1));
  flickering_steps_allocate_nothing(1, 4, Optimizer("rowwise_adagrad", 0.1));
  flickering_steps_allocate_nothing(2, 2, Optimizer("adam", 0.1, {{"lazy_adam", false}}));
}

/// Batches of 7,000 ids of which most are the only ones of their rows, but for every fourth batch,
/// which names few rows: so rows named once are set apart in some steps.
void steps_of_distinct_ids_allocate_nothing(std::int32_t hosts, RowType row_type,
                                            std::int32_t dim) {
  constexpr std::int64_t kEntries = 7000, kRows = 200'000;
  StrategyOptions strategy;
  strategy.hosts = hosts;
  strategy.executor = make_thread_pool(3);
  const auto table = [&](const char* name) {
    return FeatureConfig{
        .table =
            make_table({.vocabulary_size = kRows, .dim = dim, .name = name, .row_type = row_type})};
  };
  Embedding engine(Nested<FeatureConfig>::list({table("a"), table("b")}),
                   Optimizer("rowwise_adagrad", 0.1), make_strategy(strategy));
  std::vector<std::vector<std::int64_t>> ids;
  for (std::uint64_t batch = 0; batch < 8; ++batch) {
    std::vector<std::int64_t>& drawn = ids.emplace_back();
    const std::uint64_t rows = batch % 4 == 3 ? 500 : kRows;
    for (std::uint64_t i = 0; i < kEntries; ++i)
      drawn.push_back(static_cast<std::int64_t>(random_bits(batch, 5, 1, i) % rows));
  }
  std::vector<std::vector<Batch>> batches;
  const auto drawn = [&](std::size_t b) { return FeatureIds(DenseIds{ids[b % ids.size()], {}}); };
  for (std::size_t b = 0; b < ids.size(); ++b) {
    std::vector<Batch>& of_hosts = batches.emplace_back();
    for (std::size_t at = b; std::ssize(of_hosts) < hosts; at += 4)
      of_hosts.push_back({Nested<FeatureIds>::list({drawn(at), drawn(at + 3)}), {}});
  }
  const std::vector<float> ones(static_cast<std::size_t>(kEntries * dim), 1);
  std::int64_t apart = 0;
  const std::vector gradients(hosts,
                              Nested<Gradient>::list({Gradient{ones, {}}, Gradient{ones, {}}}));
  expect_steady([&](std::size_t i) {
    engine.enqueue(batches[i % batches.size()]);
    engine.dequeue();
    engine.apply_gradients(gradients);
    apart += engine::engine_of(engine).runner.entries_set_apart(0);
  });
  EXPECT_GT(apart, 50 * hosts * kEntries / 2);
}

TEST(SteadyStep, AllocatesNothingWhereMostRowsAreNamedOnce) {
  steps_of_distinct_ids_allocate_nothing(1, RowType::kFloat32, 16);
  steps_of_distinct_ids_allocate_nothing(1, RowType::kBfloat16, 16);
  steps_of_distinct_ids_allocate_nothing(2, RowType::kFloat32, 64);
  steps_of_distinct_ids_allocate_nothing(2, RowType::kBfloat16, 32);
}

TEST(SteadyStep, AllocatesNothingByBatchSize) {
  EmbeddingOptions options;
  options.revision = ApiRevision::kBatchSize;
  const TablePtr table = make_table({.vocabulary_size = 5000, .dim = 8, .name = "a"});
  Embedding engine(Nested<FeatureConfig>(FeatureConfig{.table = table}), Optimizer("adagrad", 0.1),
                   make_strategy(), options);
  const OwnBatch owned(1);
  const Batch batch{Nested<FeatureIds>(FeatureIds(RaggedIds{owned.splits, owned.ragged}))};
  const std::vector<float> ones(512 * 8, 1);
  const Nested<Gradient> gradient(Gradient{ones, {}});
  expect_steady([&](std::size_t) {
    engine.enqueue(batch);
    engine.dequeue();
    engine.apply_gradients(gradient);
  });
}

TEST(SteadyStep, AllocatesNothingByTheV1Api) {
  static const v1::TableConfig table = {.vocabulary_size = 5000, .dimension = 8};
  v1::Options options;
  options.device_config.num_cores = 2;
  v1::TPUEmbedding engine({{"t", table}}, {{"f", {"t"}}, {"one", {"t", 2}}, {"sequence", {"t", 3}}},
                          1024, v1::Mode::kTraining, v1::AdagradParameters{.learning_rate = 0.1},
                          options);
  const OwnBatch owned(1);
  const v1::TPUEmbedding::FeatureData core = {{"f", {owned.sparse, owned.indices, owned.weights}},
                                              {"one", {owned.dense}},
                                              {"sequence", {owned.sparse, owned.indices}}};
  const std::vector cores(2, core);
  const std::vector<float> ones(512 * 3 * 8, 1);
  const auto of = [&](std::size_t rows) { return Gradient{std::span(ones).first(rows * 8), {}}; };
  const std::vector gradients(2,
                              v1::TPUEmbedding::FeatureGradients{
                                  {"f", of(512)}, {"one", of(512 * 2)}, {"sequence", of(512 * 3)}});
  expect_steady([&](std::size_t) {
    engine.enqueue(cores);
    engine.get_activations();
    engine.send_gradients(gradients);
  });
}

}  // namespace
}  // namespace embertable
