#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "testing/engine/property_cells.h"
#include "testing/engine/slow_reference.h"

namespace embertable::slow {

/// Throws that a seed decides, the same with every standard library.
class Throws {
 public:
  explicit Throws(std::uint64_t seed) : bits_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  float unit() { return static_cast<float>(between(-1000, 1000)) / 1000; }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[between(0, static_cast<std::int64_t>(of.size()) - 1)];
  }

 private:
  std::mt19937_64 bits_;
};

/// A random engine with its batches and gradients. The cells that engine `index` visits depend on
/// its number: any 2,000 in a row visit every cell of every topology at least 50 times.
class Case {
 public:
  static constexpr int kFeatures = 6;

  Case(std::uint64_t seed, std::uint64_t index)
      : topology(static_cast<std::size_t>(index % kTopologies.size())),
        replicas(kTopologies[topology].replicas),
        hosts(kTopologies[topology].hosts),
        throws_(seed) {
    variable_batch = throws_.chance(25);
    drop = throws_.chance(35);
    make_features(index / kTopologies.size());
    steps.resize(kTopologies[topology].steps);
    for (std::size_t k = 0; k < steps.size(); ++k) make_step(k);
  }

  struct Step {
    std::vector<std::vector<Input>> inputs;  ///< [replica][feature]
    Looked looked;                           ///< the same as entries
    Given gradients;
    bool training = true;
  };

  std::size_t topology;
  std::int32_t replicas, hosts;
  bool variable_batch = false, drop = false;
  std::vector<TableSpec> tables;
  std::vector<FeatureSpec> features;
  std::vector<Step> steps;

  /// Numbers of the cells that were visited, times 3 and the combiner.
  std::vector<std::size_t> visited;

 private:
  static const std::vector<Cell>& cells() {
    static const std::vector<Cell> all = all_cells();
    return all;
  }

  /// Six features for three combiners; two of one combiner may share a table.
  void make_features(std::uint64_t engine) {
    constexpr std::uint64_t kStride = 70;  // prime to 3 * 83: visits every slot before it repeats
    std::array<std::int64_t, kCombiners> table_of = {-1, -1, -1};
    for (std::uint64_t f = 0; f < kFeatures; ++f) {
      const std::uint64_t slot = (engine * kFeatures + f) * kStride % (cells().size() * kCombiners);
      const std::size_t combiner = slot % kCombiners;
      cell_.push_back(static_cast<std::size_t>(slot / kCombiners));
      if (table_of[combiner] < 0 || throws_.chance(40)) {
        table_of[combiner] = static_cast<std::int64_t>(tables.size());
        tables.push_back(make_table(static_cast<Combiner>(combiner)));
      }
      features.push_back(make_feature(cells()[cell_.back()].form));
      features.back().table = static_cast<std::size_t>(table_of[combiner]);
    }
  }

  TableSpec make_table(Combiner combiner) {
    TableSpec table;
    table.rows = throws_.chance(30) ? throws_.between(1, 3) : throws_.between(4, 12);
    table.dim = throws_.pick({1, 2, 3, 4, 8, 17});
    table.combiner = combiner;
    for (std::int64_t i = 0; i < table.rows * table.dim; ++i) table.first.push_back(throws_.unit());
    table.rule = make_rule();
    table.replicated = throws_.chance(40);
    return table;
  }

  Rule make_rule() {
    Rule rule;
    rule.name =
        throws_.pick({"sgd", "sgd", "adagrad", "adam", "rowwise_adagrad", "momentum", "none"});
    rule.rate = throws_.pick({0.1, 0.05, 0.02});
    rule.falling = throws_.chance(30);
    if (rule.name == "none") return rule;
    rule.nesterov = throws_.chance(50);
    rule.sum_inside_sqrt = throws_.chance(50);
    rule.lazy = throws_.chance(60);
    rule.accumulate = throws_.chance(75) || !rule.lazy;
    if (rule.accumulate && throws_.chance(25)) rule.clip_gradient_min = -0.3;
    if (rule.accumulate && throws_.chance(25)) rule.clip_gradient_max = 0.4;
    if (throws_.chance(25)) rule.clip_weight_min = -0.7;
    if (throws_.chance(25)) rule.clip_weight_max = 0.6;
    if (rule.name != "rowwise_adagrad" && throws_.chance(30)) rule.decay = 0.05;
    rule.decay_by_rate = throws_.chance(50);
    return rule;
  }

  FeatureSpec make_feature(Form form) {
    FeatureSpec feature;
    const auto small = [&](std::int64_t least) { return throws_.between(least, 3); };
    if (form == Form::kVector) feature.outputs = {throws_.between(1, 5)};
    if (form == Form::kMatrix) feature.outputs = {small(1), small(2)};
    if (form == Form::kCube)
      feature.outputs = {small(1), throws_.between(1, 2), throws_.between(2, 3)};
    if (form == Form::kSequence) {
      feature.length = small(1);
      feature.outputs = {throws_.between(1, 4), feature.length};
    } else {
      feature.configured = throws_.chance(40);
      if (feature.configured && throws_.chance(30)) feature.length = 2;  // void
    }
    return feature;
  }

  void make_step(std::size_t k) {
    Step& step = steps[k];
    step.training = throws_.chance(85);
    for (std::int32_t r = 0; r < replicas; ++r) {
      step.inputs.emplace_back();
      step.looked.emplace_back();
      step.gradients.emplace_back();
      for (std::size_t f = 0; f < features.size(); ++f)
        make_part(step, f, k * replicas + static_cast<std::size_t>(r));
    }
  }

  /// What a feature of the last replica brings: the n-th input of the feature.
  void make_part(Step& step, std::size_t f, std::size_t n) {
    const FeatureSpec& feature = features[f];
    const TableSpec& table = tables[feature.table];
    const std::size_t cell = nth_cell_of_the_form(cell_[f], n);
    visited.push_back(cell * kCombiners + static_cast<std::size_t>(table.combiner));
    step.inputs.back().push_back(make_input(feature, table, cells()[cell]));
    Reading reading(feature, table, variable_batch);
    const Outputs outputs = reading.of(step.inputs.back().back());
    std::vector<float> gradient;
    if (!throws_.chance(15)) {
      for (std::int64_t i = 0; i < std::ssize(outputs) * table.dim; ++i)
        gradient.push_back(throws_.unit());
    }
    step.looked.back().push_back(outputs);
    step.gradients.back().push_back(gradient);
  }

  /// Inputs go on through the cells of the feature's form, round and round.
  static std::size_t nth_cell_of_the_form(std::size_t first, std::size_t n) {
    const auto is_other = [&](const Cell& cell) { return cell.form != cells()[first].form; };
    std::size_t begin = first, end = first;
    while (begin > 0 && !is_other(cells()[begin - 1])) --begin;
    while (end < cells().size() && !is_other(cells()[end])) ++end;
    return begin + (first - begin + n) % (end - begin);
  }

  Input make_input(const FeatureSpec& feature, const TableSpec& table, const Cell& cell) {
    Ids outputs = feature.outputs;
    const bool may_be_fewer =
        cell.way != Way::kRagged || outputs.size() == 1 || cell.form == Form::kSequence;
    if (variable_batch && may_be_fewer && throws_.chance(50))
      outputs[0] = throws_.between(cell.empties ? 1 : 0, outputs[0]);
    const std::vector<std::int64_t> counts = make_counts(rows_of(feature, outputs, cell), cell);
    Input input;
    if (cell.way == Way::kDense) {
      make_dense(input, outputs);
    } else if (cell.way == Way::kSparse) {
      make_sparse(input, feature, outputs, counts);
    } else {
      input.kind = Kind::kRagged;
      input.places = {0};
      for (const std::int64_t count : counts) input.places.push_back(input.places.back() + count);
    }
    const std::int64_t ids = cell.way == Way::kDense ? product(outputs) : sum_of(counts);
    for (std::int64_t k = 0; k < ids; ++k) input.ids.push_back(make_id(table));
    make_weights(input, cell);
    return input;
  }

  /// Rows that the ids are listed in.
  std::int64_t rows_of(const FeatureSpec& feature, const Ids& outputs, const Cell& cell) {
    if (cell.form == Form::kSequence) return outputs[0];
    if (cell.way != Way::kCut) return product(outputs);
    if (variable_batch) return outputs[0];  // each fills the inner dims
    std::int64_t rows = 0;
    do {
      rows = throws_.between(1, product(feature.outputs) - 1);
    } while (product(feature.outputs) % rows != 0);
    return rows;
  }

  static std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) sum += count;
    return sum;
  }

  /// Where weights cancel rows are short, or a denominator could be small beside its terms.
  std::int64_t longest(const Cell& cell) {
    return cell.weights != Weights::kMixed && throws_.chance(5) ? 40 : 4;
  }

  /// How many ids each row has.
  std::vector<std::int64_t> make_counts(std::int64_t rows, const Cell& cell) {
    std::vector<std::int64_t> counts;
    for (std::int64_t row = 0; row < rows; ++row)
      counts.push_back(throws_.between(cell.empties ? 0 : 1, longest(cell)));
    if (cell.empties && rows > 0) counts[throws_.between(0, rows - 1)] = 0;
    if (cell.empties && throws_.chance(15)) std::fill(counts.begin(), counts.end(), 0);
    return counts;
  }

  std::int64_t make_id(const TableSpec& table) {
    if (drop && throws_.chance(20)) {
      return throws_.pick({std::int64_t{-1}, table.rows, table.rows + 5, std::int64_t{1} << 32,
                           std::numeric_limits<std::int64_t>::max(),
                           std::numeric_limits<std::int64_t>::min()});
    }
    return throws_.between(0, throws_.chance(30) ? 0 : table.rows - 1);
  }

  void make_dense(Input& input, const Ids& outputs) {
    input.shape = outputs;
    if (outputs.size() > 1 || throws_.chance(40)) input.shape.push_back(1);
    if (input.shape.size() == 1 && throws_.chance(50)) input.shape.clear();
  }

  /// Places of the rows' ids, in order or not, some more than once.
  void make_sparse(Input& input, const FeatureSpec& feature, const Ids& outputs,
                   const std::vector<std::int64_t>& counts) {
    const std::int64_t columns = throws_.between(1, 4);
    const bool sequence = feature.length > 0 && !feature.configured;
    input.kind = Kind::kSparse;
    input.shape = sequence ? Ids{outputs[0]} : outputs;
    if (feature.configured && throws_.chance(30)) input.shape = {product(outputs)};
    std::vector<Ids> places;
    for (std::size_t row = 0; row < counts.size(); ++row) {
      Ids columns_of_row;
      for (std::int64_t k = 0; k < counts[row]; ++k)
        columns_of_row.push_back(throws_.between(0, columns - 1));
      std::sort(columns_of_row.begin(), columns_of_row.end());
      for (const std::int64_t column : columns_of_row) {
        Ids place(input.shape.size() + 1);
        place.back() = column;
        auto rest = static_cast<std::int64_t>(row);
        for (std::size_t axis = input.shape.size(); axis-- > 0; rest /= input.shape[axis])
          place[axis] = rest % input.shape[axis];
        places.push_back(place);
      }
    }
    if (throws_.chance(50)) {
      for (std::size_t i = places.size(); i > 1; --i)
        std::swap(places[i - 1], places[throws_.between(0, static_cast<std::int64_t>(i) - 1)]);
    }
    input.shape.push_back(columns);
    for (const Ids& place : places)
      input.places.insert(input.places.end(), place.begin(), place.end());
  }

  /// Multiples of a quarter, whose sums are exact, where they may be zero; of a half where they may
  /// cancel.
  void make_weights(Input& input, const Cell& cell) {
    if (cell.weights == Weights::kNone) return;
    const bool all_zero = cell.weights == Weights::kZeros && throws_.chance(30);
    for (std::size_t k = 0; k < input.ids.size(); ++k) {
      const double quarters = 0.25 * static_cast<double>(throws_.between(1, 8));
      double weight = quarters;
      if (cell.weights == Weights::kPositive)
        weight = 0.1 * static_cast<double>(throws_.between(1, 30));
      if (cell.weights == Weights::kMixed) weight = throws_.pick({-1.0, -0.5, 0.5, 1.0});
      if (cell.weights == Weights::kZeros) weight = all_zero || throws_.chance(50) ? 0 : quarters;
      input.weights.push_back(weight);
    }
    if (!input.ids.empty() && cell.weights == Weights::kMixed) input.weights[0] = -0.5;
    if (!input.ids.empty() && cell.weights == Weights::kZeros) input.weights[0] = 0;
  }

  Throws throws_;
  std::vector<std::size_t> cell_;  ///< cell of each feature's first input
};

}  // namespace embertable::slow
