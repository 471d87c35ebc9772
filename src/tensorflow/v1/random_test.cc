// The v1 engine at random, beside a plain Embedding that gets the same inputs its own way.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "embertable/tensorflow/v1.h"
#include "testing/engine/batches.h"
#include "testing/engine/dice.h"
#include "testing/executor.h"

namespace embertable::v1 {
namespace {

using engine_fixture::Dice;
using engine_fixture::F;
using engine_fixture::Ids;

float number(Dice& dice) { return static_cast<float>(dice.between(-64, 64)) / 16; }

/// Ids of one feature on one core, sample by sample, with weights.
struct Entries {
  Ids splits = {0}, values;
  F weights;
  bool weighted = false;
  bool one_each = false;

  Ids indices;  ///< sparse data only, with their values and weights in an order of their own
  Ids sparse_values;
  F sparse_weights;

  std::optional<FloatSpan> given(const F& of) const {
    return weighted ? std::optional<FloatSpan>(of) : std::nullopt;
  }
  EnqueueData sparse() const {
    if (one_each) return {values, {}, given(weights)};
    return {sparse_values, IntegerSpan(indices), given(sparse_weights)};
  }
  RaggedEnqueueData ragged() const {
    if (one_each) return {values, {}, given(weights)};
    return {values, IntegerSpan(splits), given(weights)};
  }
};

class Scene {
 public:
  explicit Scene(std::uint64_t seed) : dice_(seed) {
    const std::int64_t count = dice_.between(1, 3);
    for (std::int64_t t = 0; t < count; ++t) make_table("t" + std::to_string(9 - t));
    const std::int64_t most = count + dice_.between(0, 4);
    for (std::int64_t f = 0; f < most; ++f) {
      const std::string of =
          "t" + std::to_string(9 - (f < count ? f : dice_.between(0, count - 1)));
      features["f" + std::to_string((f * 7) % 10)] = {of,
                                                      dice_.chance(40) ? dice_.between(1, 4) : 0};
    }
    samples = dice_.between(1, 5);
  }

  std::map<std::string, TableConfig> tables;
  std::map<std::string, FeatureConfig> features;
  std::int64_t samples = 1;  ///< samples of a core
  static constexpr std::int32_t kCores = 10;

  TPUEmbedding engine(std::int32_t hosts, const std::string& strategy, bool pipelined) const {
    Options options;
    options.partition_strategy = strategy;
    options.device_config.num_hosts = hosts;
    options.device_config.num_cores = kCores;
    options.device_config.executor = make_inline_executor();
    options.engine.pipeline_execution_with_tensor_core = pipelined;
    return TPUEmbedding(tables, features, samples * kCores, Mode::kTraining, {}, options);
  }

  /// Features in a list in the order of their names.
  Embedding plain(bool pipelined) const {
    std::map<std::string, TablePtr> made;
    for (const auto& [name, table] : tables) {
      made[name] =
          embertable::make_table({.vocabulary_size = table.vocabulary_size,
                                  .dim = table.dimension,
                                  .initializer = table.initializer,
                                  .optimizer = make_optimizer(*table.optimization_parameters),
                                  .combiner = table.combiner.value_or(Combiner::kSum),
                                  .name = name});
    }
    std::vector<embertable::FeatureConfig> leaves;
    for (const auto& [name, f] : features)
      leaves.push_back(engine_fixture::feature(made[f.table_id], f.max_sequence_length));
    EmbeddingOptions options;
    options.pipeline_execution_with_tensor_core = pipelined;
    return Embedding(Nested<embertable::FeatureConfig>(structure(), leaves), {},
                     engine_fixture::accelerator(kCores), options);
  }

  Structure structure() const { return Structure::list(std::vector<Structure>(features.size())); }

  /// [core][feature]
  std::vector<std::vector<Entries>> make_step() {
    std::vector<std::vector<Entries>> step(kCores);
    for (auto& core : step)
      for (const auto& [name, feature] : features)
        core.push_back(make_entries(tables.at(feature.table_id).vocabulary_size));
    return step;
  }

  std::vector<F> make_gradients(const Activations& of) {
    std::vector<F> all;
    for (std::int32_t core = 0; core < kCores; ++core) {
      for (std::int64_t f = 0; f < of.features(); ++f) {
        F& values = all.emplace_back();
        if (dice_.chance(15)) continue;
        for (std::size_t i = 0; i < of(f, core).values.size(); ++i) values.push_back(number(dice_));
      }
    }
    return all;
  }

  bool flip() { return dice_.chance(50); }

 private:
  void make_table(const std::string& name) {
    TableConfig table;
    table.vocabulary_size = dice_.between(1, 30);
    table.dimension = static_cast<std::int32_t>(dice_.between(1, 20));
    F rows;
    for (std::int64_t i = 0; i < table.vocabulary_size * table.dimension; ++i)
      rows.push_back(number(dice_));
    table.initializer = Initializer::values(std::move(rows));
    const std::int64_t combiner = dice_.between(0, 3);
    table.combiner =
        combiner == 3 ? std::optional<Combiner>() : std::optional(static_cast<Combiner>(combiner));
    table.optimization_parameters = make_parameters();
    tables[name] = table;
  }

  OptimizationParameters make_parameters() {
    OptimizerOptions options;
    if (dice_.chance(30)) options.clip_gradient_max = 1;
    if (dice_.chance(30)) options.weight_decay_factor = 0.01;
    const std::vector<OptimizationParameters> all = {
        AdagradParameters{.learning_rate = 0.1, .options = options},
        ProximalAdagradParameters{
            .learning_rate = 0.1, .l1_regularization_strength = 0.01, .options = options},
        AdamParameters{.learning_rate = 0.1, .options = options},
        AdamParameters{.learning_rate = 0.1, .lazy_adam = false, .options = options},
        FtrlParameters{.learning_rate = 0.1, .initial_accumulator_value = 0, .options = options},
        ProximalYogiParameters{.options = options},
        MomentumParameters{.learning_rate = 0.1, .momentum = 0.5, .options = options},
        RMSPropParameters{.learning_rate = 0.1, .rho = 0.9, .momentum = 0.1, .epsilon = 0.01},
        StochasticGradientDescentParameters{.learning_rate = 0.1, .options = options}};
    return all[dice_.between(0, std::ssize(all) - 1)];
  }

  Entries make_entries(std::int64_t vocabulary) {
    Entries entries;
    entries.weighted = dice_.chance(40);
    entries.one_each = dice_.chance(20);
    std::vector<std::array<std::int64_t, 3>> places;  // sample, position, entry
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const std::int64_t count = entries.one_each ? 1 : dice_.between(0, 5);
      for (std::int64_t position = 0; position < count; ++position) {
        places.push_back({sample, position, std::ssize(entries.values)});
        entries.values.push_back(dice_.between(0, vocabulary - 1));
        entries.weights.push_back(dice_.chance(10) ? 0 : number(dice_));
      }
      entries.splits.push_back(std::ssize(entries.values));
    }
    if (dice_.chance(50)) dice_.shuffle(places);
    for (const auto& [sample, position, entry] : places) {
      entries.indices.insert(entries.indices.end(), {sample, position});
      entries.sparse_values.push_back(entries.values[entry]);
      entries.sparse_weights.push_back(entries.weights[entry]);
    }
    return entries;
  }

  Dice dice_;
};

/// What the v1 engine gets, as maps.
template <class Data, class Make>
std::vector<std::map<std::string, Data>> maps(const Scene& scene,
                                              const std::vector<std::vector<Entries>>& step,
                                              Make make) {
  std::vector<std::map<std::string, Data>> all;
  for (const auto& core : step) {
    std::map<std::string, Data>& of_core = all.emplace_back();
    std::size_t f = 0;
    for (const auto& [name, feature] : scene.features) of_core.emplace(name, make(core[f++]));
  }
  return all;
}

void enqueue(TPUEmbedding& engine, const Scene& scene,
             const std::vector<std::vector<Entries>>& step, bool sparse) {
  if (sparse) {
    engine.enqueue(maps<EnqueueData>(scene, step, [](const Entries& e) { return e.sparse(); }));
  } else {
    engine.enqueue(
        maps<RaggedEnqueueData>(scene, step, [](const Entries& e) { return e.ragged(); }));
  }
}

/// The same for the plain engine: always ragged.
void enqueue(Embedding& plain, const Scene& scene, const std::vector<std::vector<Entries>>& step) {
  std::vector<Batch> batches;
  for (const auto& core : step) {
    std::vector<FeatureIds> ids;
    std::vector<FeatureWeights> weights;
    for (const Entries& entries : core) {
      ids.push_back(RaggedIds{entries.splits, entries.values});
      weights.push_back(entries.weighted ? FeatureWeights(RaggedWeights{entries.weights})
                                         : FeatureWeights());
    }
    batches.push_back({Nested<FeatureIds>(scene.structure(), ids),
                       Nested<FeatureWeights>(scene.structure(), weights)});
  }
  plain.enqueue(batches);
}

void send(TPUEmbedding& engine, const Scene& scene, const std::vector<F>& gradients,
          bool by_table) {
  const std::size_t features = scene.features.size();
  std::vector<TPUEmbedding::FeatureGradients> of_cores;
  std::vector<F> tensors;
  for (std::size_t core = 0; core < Scene::kCores; ++core) {
    std::vector<Gradient> given;
    TPUEmbedding::FeatureGradients& of_core = of_cores.emplace_back();
    std::size_t f = 0;
    for (const auto& [name, feature] : scene.features) {
      const F& values = gradients[core * features + f++];
      given.push_back(values.empty() ? Gradient::none() : Gradient{values, {}});
      of_core[name] = given.back();
    }
    for (F& tensor : interleave(engine.layout(), given)) tensors.push_back(std::move(tensor));
  }
  if (!by_table) return engine.send_gradients(of_cores);
  const std::vector<std::span<const float>> views(tensors.begin(), tensors.end());
  engine.send_gradients(views);
}

void send(Embedding& plain, const Scene& scene, const std::vector<F>& gradients) {
  std::vector<Nested<Gradient>> trees;
  for (std::size_t core = 0; core < Scene::kCores; ++core) {
    std::vector<Gradient> leaves;
    for (std::size_t f = 0; f < scene.features.size(); ++f) {
      const F& values = gradients[core * scene.features.size() + f];
      leaves.push_back(values.empty() ? Gradient::none() : Gradient{values, {}});
    }
    trees.emplace_back(scene.structure(), leaves);
  }
  plain.apply_gradients(trees);
}

void expect_equal(const Embedding& got, const Embedding& want) {
  for (const TableInfo& table : want.tables()) {
    EXPECT_EQ(engine_fixture::variable(got, table.name, table.vocabulary_size, table.dim),
              engine_fixture::variable(want, table.name, table.vocabulary_size, table.dim))
        << table.name;
    for (const TableInfo::Slot& slot : table.slots) {
      const std::string name = table.name + "/" + slot.name;
      EXPECT_EQ(engine_fixture::variable(got, name, table.vocabulary_size, table.dim),
                engine_fixture::variable(want, name, table.vocabulary_size, table.dim))
          << name;
    }
  }
}

void expect_as_plain(std::uint64_t seed, std::int32_t hosts, const std::string& strategy) {
  Scene scene(test_seed(seed));
  const bool pipelined = scene.flip();
  TPUEmbedding engine = scene.engine(hosts, strategy, pipelined);
  Embedding plain = scene.plain(pipelined);
  for (int i = 0; i < 3; ++i) {
    const auto step = scene.make_step();
    enqueue(engine, scene, step, scene.flip());
    enqueue(plain, scene, step);
    const Activations got = engine.get_activations(), want = plain.dequeue();
    for (std::int32_t core = 0; core < Scene::kCores; ++core) {
      for (std::int64_t f = 0; f < want.features(); ++f) {
        ASSERT_EQ(got(f, core).shape, want(f, core).shape);
        ASSERT_EQ(engine_fixture::values(got, f, core), engine_fixture::values(want, f, core));
      }
    }
    const std::vector<F> gradients = scene.make_gradients(want);
    send(engine, scene, gradients, scene.flip());
    send(plain, scene, gradients);
  }
  expect_equal(engine.engine(), plain);
}

TEST(V1AtRandom, GivesTheBitsOfAPlainEmbeddingOnAnyHostsInEitherPlacement) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    for (const std::int32_t hosts : {1, 2, 5}) {
      for (const std::string strategy : {"div", "mod"}) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", hosts " + std::to_string(hosts) + ", " +
                     strategy);
        expect_as_plain(seed, hosts, strategy);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace embertable::v1
