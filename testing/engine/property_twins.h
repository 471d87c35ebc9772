#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "embertable/embertable.h"
#include "testing/engine/property_case.h"
#include "testing/executor.h"

namespace embertable::engine_property {

using slow::Case;
using slow::Throws;

/// Keeps what batches and gradients borrow, in either width.
class Arrays {
 public:
  explicit Arrays(Throws& throws) : throws_(throws) {}
  IntegerSpan keep(const slow::Ids& ids) {
    const bool fits = std::all_of(ids.begin(), ids.end(), [](std::int64_t id) {
      return id == static_cast<std::int64_t>(static_cast<std::int32_t>(id));
    });
    if (fits && throws_.chance(50)) return narrow_.emplace_back(ids.begin(), ids.end());
    return wide_.emplace_back(ids);
  }
  template <class T>
  FloatSpan keep(const std::vector<T>& numbers) {
    if (throws_.chance(50)) return floats_.emplace_back(numbers.begin(), numbers.end());
    return doubles_.emplace_back(numbers.begin(), numbers.end());
  }

 private:
  Throws& throws_;
  std::deque<std::vector<std::int32_t>> narrow_;
  std::deque<std::vector<std::int64_t>> wide_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<double>> doubles_;
};

inline Optimizer optimizer_of(const slow::Rule& rule) {
  OptimizerOptions options;
  options.clip_gradient_min = rule.clip_gradient_min;
  options.clip_gradient_max = rule.clip_gradient_max;
  options.clip_weight_min = rule.clip_weight_min;
  options.clip_weight_max = rule.clip_weight_max;
  options.weight_decay_factor = rule.decay;
  options.multiply_weight_decay_factor_by_learning_rate = rule.decay_by_rate;
  options.use_gradient_accumulation = rule.accumulate;
  Optimizer::Settings settings;
  if (rule.name == "adagrad" || rule.name == "rowwise_adagrad")
    settings.emplace_back("initial_accumulator_value", rule.initial_accumulator);
  if (rule.name == "rowwise_adagrad") settings.emplace_back("epsilon", rule.epsilon);
  if (rule.name == "momentum")
    settings = {{"momentum", rule.momentum}, {"use_nesterov", rule.nesterov}};
  if (rule.name == "adam") {
    settings = {{"beta_1", rule.beta_1},
                {"beta_2", rule.beta_2},
                {"epsilon", rule.epsilon},
                {"lazy_adam", rule.lazy},
                {"sum_inside_sqrt", rule.sum_inside_sqrt}};
  }
  LearningRate rate = rule.rate;
  if (rule.falling) {
    rate = LearningRate::scheduled(
        [first = rule.rate](std::int64_t step) { return first / static_cast<double>(step); });
  }
  return Optimizer(rule.name, rate, settings, options);
}

inline Shape shape_of(const slow::Ids& dims) { return Shape(std::span<const std::int64_t>(dims)); }

/// Numbers compared, and how many of them had a range that says little: long sums of large terms.
struct Tally {
  std::int64_t compared = 0, wide = 0;
};

/// One engine and its slow twin, driven through all steps of a case.
class Twins {
 public:
  Twins(const Case& of, std::uint64_t seed, Tally& tally)
      : case_(of),
        tally_(tally),
        throws_(seed),
        arrays_(throws_),
        slow_(of.tables, of.features),
        style_(throws_.pick({Style::kQueue, Style::kQueue, Style::kReplicas, Style::kTokens})),
        pipelined_(style_ != Style::kTokens && throws_.chance(40)),
        engine_(make_engine()) {}

  void run() {
    while (done_ < case_.steps.size() && !testing::Test::HasFailure()) {
      SCOPED_TRACE("step " + std::to_string(done_));
      if (style_ == Style::kTokens) {
        step_by_token();
      } else {
        step_by_queue();
      }
      ++done_;
    }
    if (pending_) slow_update(*pending_);
    if (!testing::Test::HasFailure()) compare_tables();
  }

 private:
  enum class Style { kQueue, kReplicas, kTokens };

  Structure structure() const {
    return Structure::list(std::vector<Structure>(case_.features.size()));
  }

  Embedding make_engine() {
    StrategyOptions strategy;
    strategy.hosts = case_.hosts;
    strategy.replicas_per_host = case_.replicas / case_.hosts;
    strategy.sharding = throws_.pick({Sharding::kDiv, Sharding::kMod});
    strategy.executor = make_inline_executor();
    if (throws_.chance(40))
      strategy.executor = std::make_shared<TestExecutor>(
          static_cast<std::uint64_t>(throws_.between(0, 1 << 30)), 3);
    EmbeddingOptions options;
    options.pipeline_execution_with_tensor_core = pipelined_;
    options.out_of_range = case_.drop ? OutOfRange::kDrop : OutOfRange::kError;
    options.variable_batch = case_.variable_batch;
    options.tuning = {.bucket_bytes = throws_.pick({0, 1, 128}),
                      .inline_floats = throws_.pick({0, 1 << 13})};
    Embedding engine(Nested<FeatureConfig>(structure(), feature_configs()), std::nullopt,
                     make_strategy(strategy), options);
    build(engine);
    return engine;
  }

  std::vector<FeatureConfig> feature_configs() const {
    std::vector<TablePtr> tables;
    for (const slow::TableSpec& spec : case_.tables) {
      constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN};
      tables.push_back(make_table({.vocabulary_size = spec.rows,
                                   .dim = static_cast<std::int32_t>(spec.dim),
                                   .initializer = Initializer::values(spec.first),
                                   .optimizer = optimizer_of(spec.rule),
                                   .combiner = kCombiners[static_cast<std::size_t>(spec.combiner)],
                                   .name = "t" + std::to_string(tables.size()),
                                   .replicated = spec.replicated}));
    }
    std::vector<FeatureConfig> features;
    for (const slow::FeatureSpec& spec : case_.features) {
      FeatureConfig& feature = features.emplace_back();
      feature.table = tables[spec.table];
      feature.max_sequence_length = spec.length;
      if (spec.configured) feature.output_shape = shape_of(spec.outputs);
    }
    return features;
  }

  /// By shapes, unless the first batch can say all.
  void build(Embedding& engine) {
    bool needed = case_.variable_batch;
    std::vector<Shape> inputs;
    for (const slow::FeatureSpec& f : case_.features) {
      const bool sequence = f.length > 0 && !f.configured;
      needed = needed || (!f.configured && !sequence && f.outputs.size() > 1);
      inputs.push_back(sequence ? Shape{f.outputs[0], 2} : shape_of(f.outputs).append(1));
    }
    if (needed || throws_.chance(50)) engine.build(Nested<Shape>(structure(), std::move(inputs)));
  }

  Batch batch_of(const std::vector<slow::Input>& inputs) {
    std::vector<FeatureIds> ids;
    std::vector<FeatureWeights> weights;
    bool weighted = throws_.chance(50);
    for (const slow::Input& input : inputs) {
      const IntegerSpan values = arrays_.keep(input.ids);
      FeatureWeights& of = weights.emplace_back();
      const bool given = !input.weights.empty();
      weighted = weighted || given;
      if (input.kind == slow::Kind::kDense) {
        ids.emplace_back(DenseIds{values, input.shape.empty() ? Shape() : shape_of(input.shape)});
      } else if (input.kind == slow::Kind::kSparse) {
        ids.emplace_back(SparseIds{arrays_.keep(input.places), values, shape_of(input.shape)});
        if (given) of = SparseWeights{arrays_.keep(input.weights)};
      } else {
        ids.emplace_back(RaggedIds{arrays_.keep(input.places), values});
        if (given) of = RaggedWeights{arrays_.keep(input.weights)};
      }
    }
    Batch batch{Nested<FeatureIds>(structure(), std::move(ids)), {}};
    if (weighted) batch.weights = Nested<FeatureWeights>(structure(), std::move(weights));
    return batch;
  }

  std::vector<Batch> batches_of(const Case::Step& step) {
    std::vector<Batch> batches;
    for (const std::vector<slow::Input>& inputs : step.inputs) batches.push_back(batch_of(inputs));
    return batches;
  }

  std::vector<Nested<Gradient>> gradients_of(const Case::Step& step) {
    std::vector<Nested<Gradient>> trees;
    for (std::size_t r = 0; r < step.gradients.size(); ++r) {
      std::vector<Gradient> leaves;
      for (std::size_t f = 0; f < case_.features.size(); ++f) {
        const std::vector<float>& values = step.gradients[r][f];
        leaves.push_back(values.empty() ? Gradient::none() : Gradient{arrays_.keep(values), {}});
      }
      trees.emplace_back(structure(), std::move(leaves));
    }
    return trees;
  }

  /// Keeps the queues filled up to two batches ahead.
  void enqueue_ahead() {
    const std::size_t ahead = done_ + static_cast<std::size_t>(throws_.between(1, 3));
    for (; queued_ < std::min(ahead, case_.steps.size()); ++queued_) {
      const Case::Step& step = case_.steps[queued_];
      const std::vector<Batch> batches = batches_of(step);
      if (style_ == Style::kQueue) {
        engine_.enqueue(batches, {.training = step.training});
        continue;
      }
      const auto first = static_cast<std::int32_t>(throws_.between(0, case_.replicas - 1));
      for (std::int32_t i = 0; i < case_.replicas; ++i) {
        const std::int32_t r = (first + i) % case_.replicas;
        engine_.replica(r).enqueue(batches[r], {.training = step.training});
      }
    }
  }

  void step_by_queue() {
    if (queued_ <= done_) enqueue_ahead();
    const Case::Step& step = case_.steps[done_];
    if (!step.training) flush();
    compare_forward(step, engine_.dequeue());
    flush();
    if (!step.training) return;
    engine_.apply_gradients(gradients_of(step));
    pending_ = done_;
    if (!pipelined_) flush();
  }

  void step_by_token() {
    const Case::Step& step = case_.steps[done_];
    LookupResult looked = engine_.look_up(batches_of(step), step.training);
    compare_forward(step, looked.activations);
    if (!step.training) return;
    engine_.apply_gradients(std::move(looked.token), gradients_of(step));
    slow_update(done_);
  }

  void slow_update(std::size_t step) {
    slow_.update(case_.steps[step].looked, case_.steps[step].gradients);
  }
  void flush() {
    if (pending_) slow_update(*pending_);
    pending_.reset();
  }

  void compare(std::span<const float> got, const slow::Ranges& expected, const char* what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const slow::Range& range = expected[i];
      ASSERT_TRUE(range.contains(static_cast<double>(got[i])))
          << what << " element " << i << " is " << got[i] << ", not in [" << range.low << ", "
          << range.high << "]";
      ++tally_.compared;
      tally_.wide += range.high - range.low > 1e-3 * (1 + range.magnitude()) ? 1 : 0;
    }
  }

  void compare_forward(const Case::Step& step, const Activations& got) {
    for (std::size_t r = 0; r < step.looked.size(); ++r) {
      for (std::size_t f = 0; f < case_.features.size(); ++f) {
        SCOPED_TRACE("replica " + std::to_string(r) + ", feature " + std::to_string(f));
        const Activation a = got(static_cast<std::int64_t>(f), static_cast<std::int32_t>(r));
        compare(a.values, slow_.forward(f, step.looked[r][f]), "activation");
        slow::Ids shape = case_.features[f].outputs;
        shape[0] *= std::ssize(step.looked[r][f]);
        shape[0] /= slow::product(case_.features[f].outputs);
        shape.push_back(case_.tables[case_.features[f].table].dim);
        ASSERT_EQ(a.shape, shape_of(shape));
      }
    }
  }

  std::vector<float> variable(const std::string& name, std::int64_t rows, std::size_t size) const {
    slow::Ids ids;
    for (std::int64_t id = 0; id < rows; ++id) ids.push_back(id);
    std::vector<float> values(size);
    engine_.read_rows(name, ids, values);
    return values;
  }

  void compare_tables() {
    for (std::size_t t = 0; t < slow_.tables().size(); ++t) {
      const slow::Table& table = slow_.tables()[t];
      const std::string name = "t" + std::to_string(t);
      SCOPED_TRACE(name + " " + optimizer_of(table.spec().rule).to_string());
      compare(variable(name, table.spec().rows, table.rows().size()), table.rows(), "row");
      for (const auto& [slot, values] : table.slots())
        compare(variable(name + "/" + slot, table.spec().rows, values.size()), values, "slot");
      if (table.spec().rule.name == "none") compare_sums(name, table);
    }
  }

  void compare_sums(const std::string& name, const slow::Table& table) {
    const GradientSumsOfTable got = engine_.gradient_sums(name);
    slow::Ids ids;
    slow::Ranges sums;
    for (const auto& [id, sum] : table.sums()) {
      ids.push_back(id);
      sums.insert(sums.end(), sum.begin(), sum.end());
    }
    ASSERT_EQ(got.ids, ids);
    compare(got.sums, sums, "gradient sum");
  }

  const Case& case_;
  Tally& tally_;
  Throws throws_;
  Arrays arrays_;
  slow::Engine slow_;
  Style style_;
  bool pipelined_;
  Embedding engine_;
  std::size_t queued_ = 0, done_ = 0;
  std::optional<std::size_t> pending_;  ///< the step whose update the next forward does not see
};

}  // namespace embertable::engine_property
