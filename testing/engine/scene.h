#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/rule.h"
#include "testing/engine/batches.h"
#include "testing/engine/dice.h"

namespace embertable::engine_fixture {

/// An id with its weight, as one output row has them after cutting and dropping, by column.
struct Entry {
  std::int64_t id = 0;
  double weight = 1;
  std::int64_t column = 0;  ///< sparse ids only
};

/// What one feature of one replica looks up in one step: as the engine gets it, and as lists.
struct Input {
  FeatureIds ids;
  FeatureWeights weights;
  std::vector<std::vector<Entry>> entries;  ///< by output row
  Shape outputs;                            ///< S, or less on axis 0
};

/// Sizes of a scene, and what it may contain.
struct SceneLimits {
  std::int64_t rows = 60;     ///< rows of a table
  std::int64_t outputs = 12;  ///< outputs of a vector feature
  std::int64_t columns = 6;   ///< ids of a sample
  std::int32_t replicas = 0;  ///< 0: 1, 2 or 4
  int steps = 2;
  bool wild = false;      ///< any dim to 130; weights and gradients that are no numbers, or tiny
  bool variable = false;  ///< inputs may bring fewer output rows
  bool any_rule = false;  ///< every rule that steps rows, instead of three
  int bfloat16 = 0;       ///< percentage of the tables that have such rows
};

/// A random engine with its batches: tables, features of every kind, inputs of every form,
/// gradients.
class Scene {
 public:
  static constexpr int kSteps = SceneLimits().steps;

  Scene(std::uint64_t seed, const SceneLimits& limits) : limits_(limits), dice_(seed) {
    replicas = limits.replicas > 0 ? limits.replicas : dice_.pick({1, 2, 4});
    drop = dice_.chance(40);
    make_tables();
    make_features();
    steps.resize(limits.steps);
    for (auto& step : steps) {
      for (std::int32_t r = 0; r < replicas; ++r) step.push_back(make_inputs());
    }
    for (auto& step : steps) batches.push_back(make_batches(step));
    gradient_seed_ = static_cast<std::uint64_t>(dice_.between(0, 1 << 30));
  }

  struct Table {
    TablePtr config;
    Optimizer optimizer = sgd(0.1);
    F first_rows;
  };
  struct Feature {
    std::size_t table = 0;
    std::int64_t length = 0;  ///< L of a sequence, else 0
    Shape outputs;            ///< S
    bool configured = false;
  };

  std::int32_t replicas = 1;
  bool drop = false;
  std::vector<Table> tables;
  std::vector<Feature> features;
  std::vector<std::vector<std::vector<Input>>> steps;  ///< [step][replica][feature]
  std::vector<std::vector<Batch>> batches;             ///< [step][replica]

  /// `optimizer` is that of the tables whose own is sgd(0.1).
  Embedding engine(StrategyOptions strategy, EmbeddingOptions options = {},
                   const Optimizer& optimizer = sgd(0.1)) const {
    strategy.replicas_per_host = replicas / strategy.hosts;
    options.out_of_range = drop ? OutOfRange::kDrop : OutOfRange::kError;
    options.variable_batch = limits_.variable;
    std::vector<FeatureConfig> leaves;
    for (const Feature& f : features) {
      // A configured shape makes the length void.
      leaves.push_back(feature(tables[f.table].config, f.configured ? 3 : f.length,
                               f.configured ? f.outputs : Shape()));
    }
    Embedding engine(Nested<FeatureConfig>(structure(), std::move(leaves)), optimizer,
                     make_strategy(strategy), std::move(options));
    // Else the first batch builds.
    if (replicas > 1 || limits_.variable) engine.build(Nested<Shape>(structure(), input_shapes()));
    return engine;
  }

  /// The gradient of one activation: none at times, else numbers of the scene's plus `share` of the
  /// activation.
  F gradient(int step, std::int32_t replica, std::int64_t feature,
             std::span<const float> activation, float share) const {
    Dice dice(gradient_seed_ + static_cast<std::uint64_t>((step * 64 + replica) * 64 + feature));
    if (dice.chance(15)) return {};
    F values;
    for (const float a : activation) values.push_back(static_cast<float>(dice.unit()) + share * a);
    if (limits_.wild && dice.chance(10) && !values.empty())
      values[values.size() / 2] = static_cast<float>(no_plain_number(dice));
    return values;
  }

 private:
  static double no_plain_number(Dice& dice) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return dice.pick({-0.0, 0.0, 1e-42, -1e-45, 1e-30, 3e38, -3e38, kInfinity, -kInfinity,
                      std::numeric_limits<double>::quiet_NaN()});
  }

  /// What a feature asks for in one input.
  Shape outputs_of(const Feature& f) {
    if (!limits_.variable || dice_.chance(40)) return f.outputs;
    return f.outputs.with_leading(dice_.between(0, f.outputs[0]));
  }

  Structure structure() const { return Structure::list(std::vector<Structure>(features.size())); }

  std::vector<Shape> input_shapes() const {
    std::vector<Shape> shapes;
    for (const Feature& f : features)
      shapes.push_back(f.length > 0 ? Shape{f.outputs[0], 2} : f.outputs.append(1));
    return shapes;
  }

  void make_tables() {
    const std::int64_t count = dice_.between(1, 3);
    for (std::int64_t t = 0; t < count; ++t) {
      TableConfig config;
      config.name = "t" + std::to_string(t);
      config.vocabulary_size =
          dice_.chance(30) ? dice_.between(1, 4) : dice_.between(1, limits_.rows);
      config.dim = limits_.wild && dice_.chance(60)
                       ? static_cast<std::int32_t>(dice_.between(1, 130))
                       : dice_.pick({1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64});
      config.combiner = dice_.pick({Combiner::kSum, Combiner::kMean, Combiner::kSqrtN});
      Table table;
      for (std::int64_t i = 0; i < config.vocabulary_size * config.dim; ++i)
        table.first_rows.push_back(static_cast<float>(dice_.unit()));
      config.initializer = Initializer::values(table.first_rows);
      switch (dice_.between(0, 3)) {
        case 0:
          break;  // the engine's
        case 1:
          table.optimizer = Optimizer("sgd", 0.03, {}, make_options());
          break;
        case 2:
          table.optimizer =
              Optimizer("adagrad", 0.1, {{"initial_accumulator_value", 0.5}}, make_options());
          break;
        case 3:
          table.optimizer = Optimizer("rowwise_adagrad", 0.05,
                                      {{"initial_accumulator_value", 0.25}, {"epsilon", 0.125}},
                                      without_decay(make_options()));
          break;
      }
      if (limits_.any_rule && dice_.chance(60)) table.optimizer = any_optimizer(config.dim);
      if (limits_.bfloat16 > 0 && dice_.chance(limits_.bfloat16))
        config.row_type = RowType::kBfloat16;
      if (!(table.optimizer == sgd(0.1))) config.optimizer = table.optimizer;
      table.config = make_table(std::move(config));
      tables.push_back(std::move(table));
    }
  }

  /// An optimizer of a rule that can step such rows, with random flags and choices.
  Optimizer any_optimizer(std::int32_t dim) {
    const std::vector<std::string> rules = optimizer_rules();
    for (;;) {
      const Rule& rule =
          find_rule(rules[dice_.between(0, static_cast<std::int64_t>(rules.size()) - 1)]);
      Optimizer::Settings settings;
      for (const RuleParameter& parameter : rule.parameters()) {
        if (!parameter.is_choice()) continue;
        const std::int64_t last = static_cast<std::int64_t>(parameter.choices.size()) - 1;
        settings.emplace_back(std::string(parameter.name),
                              static_cast<double>(dice_.between(0, last)));
      }
      const OptimizerOptions options = make_options();
      try {
        const Optimizer optimizer(rule.name(), 0.0625, settings, options);
        rule.check_dim(dim);
        if (!rule.gives_sums()) return optimizer;
      } catch (const std::logic_error&) {  // not with these options, or not rows like these
      }
    }
  }

  /// For a rule that has a decay of its own.
  static OptimizerOptions without_decay(OptimizerOptions options) {
    options.weight_decay_factor = 0;
    return options;
  }

  /// Half of the time none.
  OptimizerOptions make_options() {
    OptimizerOptions options;
    if (dice_.chance(50)) return options;
    options.use_gradient_accumulation = dice_.chance(50);
    if (options.use_gradient_accumulation && dice_.chance(50)) options.clip_gradient_max = 0.75;
    if (options.use_gradient_accumulation && dice_.chance(50)) options.clip_gradient_min = -0.5;
    if (dice_.chance(50)) options.clip_weight_min = -0.7;
    if (dice_.chance(50)) options.clip_weight_max = 0.3;
    if (dice_.chance(50)) options.weight_decay_factor = 0.0625;
    options.multiply_weight_decay_factor_by_learning_rate = dice_.chance(50);
    return options;
  }

  void make_features() {
    const std::int64_t count = dice_.between(static_cast<std::int64_t>(tables.size()), 5);
    for (std::int64_t i = 0; i < count; ++i) {
      Feature f;
      f.table = i < static_cast<std::int64_t>(tables.size())
                    ? static_cast<std::size_t>(i)
                    : static_cast<std::size_t>(
                          dice_.between(0, static_cast<std::int64_t>(tables.size()) - 1));
      const std::int64_t n = dice_.between(1, limits_.outputs);
      const std::int64_t form = dice_.between(0, 9);
      if (form < 5) {
        f.outputs = Shape{n};
      } else if (form < 7) {
        f.length = dice_.between(1, 4);
        f.outputs = Shape{n, f.length};
      } else {
        f.configured = true;
        f.outputs = dice_.pick({Shape{n}, Shape{dice_.between(1, 4), dice_.between(1, 4)},
                                Shape{2, dice_.between(1, 3), dice_.between(1, 2)}});
      }
      features.push_back(f);
    }
  }

  std::vector<Input> make_inputs() {
    std::vector<Input> all;
    for (const Feature& f : features) all.push_back(make_input(f));
    return all;
  }

  std::vector<Batch> make_batches(const std::vector<std::vector<Input>>& step) {
    std::vector<Batch> all;
    for (const std::vector<Input>& inputs : step) {
      std::vector<FeatureIds> ids;
      std::vector<FeatureWeights> weights;
      for (const Input& input : inputs) {
        ids.push_back(input.ids);
        weights.push_back(input.weights);
      }
      Batch batch{Nested<FeatureIds>(structure(), std::move(ids)), {}};
      bool any = false;
      for (const FeatureWeights& w : weights) any = any || w.index() != 0;
      if (any || dice_.chance(50))
        batch.weights = Nested<FeatureWeights>(structure(), std::move(weights));
      all.push_back(std::move(batch));
    }
    return all;
  }

  Input make_input(const Feature& f) {
    const std::int64_t kind = dice_.between(f.length > 0 ? 1 : 0, 2);
    if (kind == 0) return make_dense(f);
    return kind == 1 ? make_sparse(f) : make_ragged(f);
  }

  std::int64_t make_id(const Feature& f) {
    const std::int64_t rows = tables[f.table].config->vocabulary_size;
    if (drop && dice_.chance(15)) {
      return dice_.pick({std::int64_t{-1}, rows, rows + 17, std::int64_t{1} << 40,
                         std::numeric_limits<std::int64_t>::min()});
    }
    return dice_.chance(30) ? dice_.between(0, std::min<std::int64_t>(rows - 1, 2))
                            : dice_.between(0, rows - 1);
  }

  /// Ids with weights, as the input will list them.
  struct Values {
    Ids ids;
    std::vector<double> weights;
    int form = 0;  ///< 0: no weights, 1: float, 2: double
  };
  Values start_values() { return {{}, {}, static_cast<int>(dice_.pick({0, 0, 1, 2}))}; }

  /// One more entry; counts for `output` unless that is -1 or its id is outside the table.
  void add(const Feature& f, Input& input, Values& values, std::int64_t output, bool ignore_weight,
           std::int64_t column = 0) {
    const std::int64_t id = make_id(f);
    // Exact in binary32 but where they are doubles, which are positive then: denominators that are
    // nearly zero would make any tolerance meaningless.
    double weight = values.form == 0   ? 1.0
                    : values.form == 1 ? 0.25 * static_cast<double>(dice_.between(-4, 12))
                                       : 0.1 * static_cast<double>(dice_.between(1, 20));
    if (limits_.wild && values.form > 0 && dice_.chance(3)) weight = no_plain_number(dice_);
    values.ids.push_back(id);
    values.weights.push_back(weight);
    if (output < 0 || id < 0 || id >= tables[f.table].config->vocabulary_size) return;
    input.entries[output].push_back(
        {id, ignore_weight ? 1.0 : static_cast<double>(static_cast<float>(weight)), column});
  }

  Input make_dense(const Feature& f) {
    Input input;
    input.outputs = outputs_of(f);
    const std::int64_t n = input.outputs.num_elements();
    input.entries.resize(n);
    Values values;
    for (std::int64_t i = 0; i < n; ++i) add(f, input, values, i, true);
    const bool vector = f.outputs.rank() == 1;
    const Shape shape = !vector            ? input.outputs.append(1)
                        : dice_.chance(30) ? Shape{n, 1}
                        : dice_.chance(50) ? Shape{n}
                                           : Shape();
    input.ids = DenseIds{keep(values.ids), shape};
    return input;
  }

  Input make_sparse(const Feature& f) {
    Input input;
    input.outputs = outputs_of(f);
    const std::int64_t n = input.outputs.num_elements();
    input.entries.resize(n);
    const std::int64_t columns = dice_.between(1, limits_.columns);
    Shape shape = f.length > 0 ? Shape{input.outputs[0], columns} : input.outputs.append(columns);
    if (f.configured && dice_.chance(30)) shape = Shape{n, columns};
    std::vector<std::pair<std::int64_t, std::int64_t>> cells;  // row of the input, column
    const std::int64_t rows = shape.without_last().num_elements();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const int times = static_cast<int>(dice_.pick({0, 1, 1, f.length > 0 ? 1 : 2}));
        for (int i = 0; i < times; ++i) cells.emplace_back(row, column);
      }
    }
    if (dice_.chance(30)) {
      for (std::size_t i = cells.size(); i > 1; --i)
        std::swap(cells[i - 1], cells[dice_.between(0, static_cast<std::int64_t>(i) - 1)]);
    }
    Values values = start_values();
    Ids indices;
    for (const auto& [row, column] : cells) {
      Ids index(shape.rank());
      index.back() = column;
      std::int64_t rest = row;
      for (int axis = shape.rank() - 2; axis >= 0; --axis) {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      indices.insert(indices.end(), index.begin(), index.end());
      const std::int64_t output = f.length == 0       ? row
                                  : column < f.length ? row * f.length + column
                                                      : -1;
      add(f, input, values, output, false, column);
    }
    for (std::vector<Entry>& entries : input.entries)
      std::ranges::stable_sort(entries, {}, &Entry::column);
    input.ids = SparseIds{keep(indices), keep(values.ids), shape};
    if (values.form > 0) input.weights = SparseWeights{keep(values)};
    return input;
  }

  Input make_ragged(const Feature& f) {
    Input input;
    input.outputs = outputs_of(f);
    const std::int64_t n = input.outputs.num_elements();
    input.entries.resize(n);
    std::int64_t length = f.length;
    bool ignore_weights = false;
    if (limits_.variable && f.configured && f.outputs.rank() > 1) {
      // Rows up to S[0] are sequences as long as the other dims ask for.
      const std::int64_t inner = f.outputs.num_elements() / f.outputs[0];
      const bool all = n == f.outputs.num_elements() && dice_.chance(50);
      length = inner > 1 && !all ? inner : 0;
      ignore_weights = length > 0;
    } else if (f.configured && f.outputs.rank() > 1 && n > 1 && dice_.chance(40)) {
      do {
        length = dice_.between(2, n);
      } while (n % length != 0);
      ignore_weights = true;
    }
    Values values = start_values();
    Ids splits = {0};
    for (std::int64_t row = 0; row < (length > 0 ? n / length : n); ++row) {
      const std::int64_t count = dice_.chance(20) ? 0 : dice_.between(0, limits_.columns);
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t output = length == 0 ? row : k < length ? row * length + k : -1;
        add(f, input, values, output, ignore_weights);
      }
      splits.push_back(splits.back() + count);
    }
    input.ids = RaggedIds{keep(splits), keep(values.ids)};
    if (values.form > 0) input.weights = RaggedWeights{keep(values)};
    return input;
  }

  /// Keeps the numbers, as int32 at times.
  IntegerSpan keep(const Ids& ids) {
    bool narrow = dice_.chance(50);
    for (const std::int64_t id : ids)
      narrow = narrow && id == static_cast<std::int64_t>(static_cast<std::int32_t>(id));
    if (narrow) return narrow_.emplace_back(ids.begin(), ids.end());
    return wide_.emplace_back(ids);
  }
  FloatSpan keep(const Values& values) {
    if (values.form == 2) return doubles_.emplace_back(values.weights);
    return floats_.emplace_back(values.weights.begin(), values.weights.end());
  }

  SceneLimits limits_;
  Dice dice_;
  std::uint64_t gradient_seed_ = 0;
  std::deque<std::vector<std::int32_t>> narrow_;
  std::deque<Ids> wide_;
  std::deque<F> floats_;
  std::deque<std::vector<double>> doubles_;
};

}  // namespace embertable::engine_fixture
