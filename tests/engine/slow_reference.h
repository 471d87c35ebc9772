#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/slow_range.h"

namespace embertable::slow {

// An embedding engine as its rules describe it, one number at a time and without any code of the
// library: ids become lists of entries, entries become activations, gradients become steps.

using Ids = std::vector<std::int64_t>;
using Ranges = std::vector<Range>;

inline double to_float(double x) { return static_cast<double>(static_cast<float>(x)); }

enum class Combiner { kSum, kMean, kSqrtN };
enum class Kind { kDense, kSparse, kRagged };

/// What a gradient does to a row of a table, and what is around it.
struct Rule {
  std::string name = "sgd";  ///< or adagrad, adam, rowwise_adagrad, momentum, none
  double rate = 0.1;
  bool falling = false;  ///< the rate of step k is rate / k
  double initial_accumulator = 0.5;
  double epsilon = 0.125;
  double beta_1 = 0.9, beta_2 = 0.99, momentum = 0.75;
  bool nesterov = false, lazy = true, sum_inside_sqrt = true;
  bool accumulate = true;
  std::optional<double> clip_gradient_min, clip_gradient_max, clip_weight_min, clip_weight_max;
  double decay = 0;
  bool decay_by_rate = false;
};

struct TableSpec {
  std::int64_t rows = 1, dim = 1;
  Combiner combiner = Combiner::kSum;
  Rule rule;
  std::vector<float> first;  ///< [rows, dim]
};

struct FeatureSpec {
  std::size_t table = 0;
  Ids outputs;              ///< S
  bool configured = false;  ///< S is the configuration's; then `length` is void
  std::int64_t length = 0;
};

/// What one feature of one replica brings.
struct Input {
  Kind kind = Kind::kDense;
  Ids shape;   ///< of dense ids (empty: a vector) and of sparse ones
  Ids places;  ///< coordinates or row splits
  Ids ids;
  std::vector<double> weights;  ///< as many as ids, or empty: all 1
};

struct Entry {
  std::int64_t id;
  double weight;
};

/// Entries by output row.
using Outputs = std::vector<std::vector<Entry>>;

inline std::int64_t product(const Ids& dims) {
  std::int64_t all = 1;
  for (const std::int64_t dim : dims) all *= dim;
  return all;
}

/// Turns what a feature brings into entries.
class Reading {
 public:
  Reading(const FeatureSpec& feature, const TableSpec& table, bool variable_batch)
      : feature_(feature), table_(table), variable_batch_(variable_batch) {}

  Outputs of(const Input& input) {
    outputs_.clear();
    if (input.kind == Kind::kDense) read_dense(input);
    if (input.kind == Kind::kSparse) read_sparse(input);
    if (input.kind == Kind::kRagged) read_ragged(input);
    return std::move(outputs_);
  }

 private:
  /// An id outside the table counts as absent.
  void add(const Input& input, std::size_t k, std::size_t output, bool weighted) {
    if (input.ids[k] < 0 || input.ids[k] >= table_.rows) return;
    const double weight = weighted && !input.weights.empty() ? to_float(input.weights[k]) : 1;
    outputs_[output].push_back({input.ids[k], weight});
  }

  void read_dense(const Input& input) {
    outputs_.resize(input.ids.size());
    for (std::size_t k = 0; k < input.ids.size(); ++k) add(input, k, k, false);
  }

  void read_sparse(const Input& input) {
    const std::size_t rank = input.shape.size();
    const bool sequence = rank == 2 && feature_.length > 0 && !feature_.configured;
    const auto length = static_cast<std::size_t>(sequence ? feature_.length : 1);
    outputs_.resize(
        static_cast<std::size_t>(product({input.shape.begin(), input.shape.end() - 1})) * length);
    std::vector<std::pair<Ids, std::size_t>> order;  // row-major, equal places as they came
    for (std::size_t k = 0; k < input.ids.size(); ++k) {
      const auto at = input.places.begin() + static_cast<std::ptrdiff_t>(k * rank);
      order.emplace_back(Ids(at, at + static_cast<std::ptrdiff_t>(rank)), k);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [place, k] : order) {
      std::int64_t row = 0;
      for (std::size_t axis = 0; axis + 1 < rank; ++axis)
        row = row * input.shape[axis] + place[axis];
      const auto column = static_cast<std::size_t>(place.back());
      if (!sequence) add(input, k, static_cast<std::size_t>(row), true);
      if (sequence && column < length)
        add(input, k, static_cast<std::size_t>(row) * length + column, true);
    }
  }

  /// Output rows that one row of ragged ids fills.
  std::int64_t outputs_of_a_row(std::int64_t rows) const {
    if (feature_.length > 0 && !feature_.configured) return feature_.length;
    const std::int64_t all = product(feature_.outputs);
    if (rows == all) return 1;
    if (variable_batch_ && rows <= feature_.outputs[0]) return all / feature_.outputs[0];
    return all / rows;
  }

  void read_ragged(const Input& input) {
    const auto rows = static_cast<std::int64_t>(input.places.size()) - 1;
    const std::int64_t each = outputs_of_a_row(rows);
    const bool sequence = feature_.length > 0 && !feature_.configured;
    outputs_.resize(static_cast<std::size_t>(rows * each));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = input.places[static_cast<std::size_t>(row)];
      for (std::int64_t k = begin; k < input.places[static_cast<std::size_t>(row) + 1]; ++k) {
        const auto entry = static_cast<std::size_t>(k);
        const auto output = static_cast<std::size_t>(row * each + k - begin);
        if (!sequence && each == 1) {
          add(input, entry, static_cast<std::size_t>(row), true);
        } else if (k - begin < each) {  // by S alone, without weights; by the length, with them
          add(input, entry, output, sequence);
        }
      }
    }
  }

  const FeatureSpec& feature_;
  const TableSpec& table_;
  bool variable_batch_;
  Outputs outputs_;
};

/// What the entries of one output row are divided by.
inline Range denominator(Combiner combiner, const std::vector<Entry>& entries) {
  if (combiner == Combiner::kSum) return 1;
  Sum sum;
  for (const Entry& entry : entries)
    sum.add(combiner == Combiner::kMean ? Range(entry.weight) : square(entry.weight));
  return combiner == Combiner::kMean ? sum.total() : root(sum.total());
}

/// True where the weights cancel, or are all zero: such a row is zeros, and so are its gradients.
inline bool vanishes(Combiner combiner, const std::vector<Entry>& entries) {
  double sum = 0;
  for (const Entry& entry : entries)
    sum += combiner == Combiner::kMean ? entry.weight : entry.weight * entry.weight;
  return combiner != Combiner::kSum && sum == 0;
}

/// A table with its slots.
class Table {
 public:
  explicit Table(const TableSpec& spec) : spec_(spec), rows_(spec.first.begin(), spec.first.end()) {
    const auto full = static_cast<std::size_t>(spec.rows * spec.dim);
    const std::string& rule = spec.rule.name;
    const double start = to_float(spec.rule.initial_accumulator);
    if (rule == "adagrad") slots_["accumulators"] = Ranges(full, start);
    if (rule == "rowwise_adagrad")
      slots_["accumulators"] = Ranges(static_cast<std::size_t>(spec.rows), start);
    if (rule == "adam" || rule == "momentum") slots_["momenta"] = Ranges(full);
    if (rule == "adam") slots_["velocities"] = Ranges(full);
  }

  const TableSpec& spec() const { return spec_; }
  const Ranges& rows() const { return rows_; }
  const std::map<std::string, Ranges>& slots() const { return slots_; }

  /// Ids with their gradients of the last step, of the rule "none".
  const std::map<std::int64_t, Ranges>& sums() const { return sums_; }
  void keep(std::map<std::int64_t, Ranges> sums) { sums_ = std::move(sums); }

  /// The k-th step, of one row.
  void step(std::int64_t id, Ranges g, std::int64_t k) {
    const Rule& rule = spec_.rule;
    const Range rate = to_float(rule.falling ? rule.rate / static_cast<double>(k) : rule.rate);
    clip(g.data(), rule.clip_gradient_min, rule.clip_gradient_max);
    Range* const w = rows_.data() + id * spec_.dim;
    if (rule.decay != 0) {
      Range by = to_float(rule.decay);
      if (rule.decay_by_rate) by = by * rate;
      for (std::int64_t c = 0; c < spec_.dim; ++c) w[c] = decayed(w[c], by);
    }
    if (rule.name == "rowwise_adagrad") {
      step_rowwise(id, w, g, rate);
    } else {
      for (std::int64_t c = 0; c < spec_.dim; ++c)
        w[c] = w[c] - change(id * spec_.dim + c, g[static_cast<std::size_t>(c)], rate);
    }
    clip(w, rule.clip_weight_min, rule.clip_weight_max);
  }

 private:
  /// Each end for itself: as a difference of two ranges it would grow where it shrinks.
  static Range decayed(const Range& w, const Range& by) {
    const Range low = w.low - by * w.low, high = w.high - by * w.high;
    return {low.low, high.high};
  }

  void clip(Range* x, const std::optional<double>& low, const std::optional<double>& high) const {
    for (std::int64_t c = 0; c < spec_.dim; ++c) {
      if (low) x[c] = at_least(x[c], to_float(*low));
      if (high) x[c] = at_most(x[c], to_float(*high));
    }
  }

  Range& slot(const std::string& name, std::int64_t element) {
    return slots_.at(name)[static_cast<std::size_t>(element)];
  }

  /// What is taken from one element of a row.
  Range change(std::int64_t element, const Range& g, const Range& rate) {
    const Rule& rule = spec_.rule;
    if (rule.name == "sgd") return rate * g;
    if (rule.name == "adagrad") {
      Range& a = slot("accumulators", element);
      a = a + square(g);
      return rate * g / root(a);
    }
    Range& m = slot("momenta", element);
    if (rule.name == "momentum") {
      const Range keep = to_float(rule.momentum);
      m = keep * m + g;
      return rule.nesterov ? rate * g + rate * keep * m : rate * m;
    }
    const Range beta_1 = to_float(rule.beta_1), beta_2 = to_float(rule.beta_2);
    const Range epsilon = to_float(rule.epsilon);
    Range& v = slot("velocities", element);
    m = beta_1 * m + (1 - beta_1) * g;
    v = beta_2 * v + (1 - beta_2) * square(g);
    return rate * m / (rule.sum_inside_sqrt ? root(v + epsilon * epsilon) : root(v) + epsilon);
  }

  void step_rowwise(std::int64_t id, Range* w, const Ranges& g, const Range& rate) {
    Sum squares;
    for (const Range& x : g) squares.add(square(x));
    Range& a = slot("accumulators", id);
    a = a + squares.total() / static_cast<double>(spec_.dim);
    const Range by = rate / (root(a) + to_float(spec_.rule.epsilon));
    for (std::int64_t c = 0; c < spec_.dim; ++c) w[c] = w[c] - by * g[static_cast<std::size_t>(c)];
  }

  TableSpec spec_;
  Ranges rows_;
  std::map<std::string, Ranges> slots_;
  std::map<std::int64_t, Ranges> sums_;
};

/// By replica and feature: the entries that a step looks up, and the gradients (empty: null).
using Looked = std::vector<std::vector<Outputs>>;
using Given = std::vector<std::vector<std::vector<float>>>;

class Engine {
 public:
  Engine(const std::vector<TableSpec>& tables, std::vector<FeatureSpec> features)
      : features_(std::move(features)) {
    for (const TableSpec& table : tables) tables_.emplace_back(table);
  }

  const std::vector<Table>& tables() const { return tables_; }

  /// One feature's activations, [outputs, dim].
  Ranges forward(std::size_t feature, const Outputs& outputs) const {
    const Table& table = tables_[features_[feature].table];
    const TableSpec& spec = table.spec();
    Ranges all;
    for (const std::vector<Entry>& entries : outputs) {
      const Range by = denominator(spec.combiner, entries);
      const bool zero = entries.empty() || vanishes(spec.combiner, entries);
      for (std::int64_t c = 0; c < spec.dim; ++c) {
        Sum sum;
        for (const Entry& entry : entries)
          sum.add(entry.weight * table.rows()[static_cast<std::size_t>(entry.id * spec.dim + c)]);
        all.push_back(zero ? Range(0) : sum.total() / by);
      }
    }
    return all;
  }

  /// One step of all tables.
  void update(const Looked& looked, const Given& given) {
    ++steps_;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].spec().rule.accumulate) {
        step_sums(t, looked, given);
      } else {
        for_each_term(t, looked, given, [&](std::int64_t id, const Ranges& term) {
          tables_[t].step(id, term, steps_);
        });
      }
    }
  }

 private:
  void step_sums(std::size_t t, const Looked& looked, const Given& given) {
    Table& table = tables_[t];
    const auto dim = static_cast<std::size_t>(table.spec().dim);
    std::map<std::int64_t, std::vector<Sum>> sums;
    for_each_term(t, looked, given, [&](std::int64_t id, const Ranges& term) {
      std::vector<Sum>& sum = sums.try_emplace(id, dim).first->second;
      for (std::size_t c = 0; c < dim; ++c) sum[c].add(term[c]);
    });
    std::map<std::int64_t, Ranges> totals;
    for (const auto& [id, sum] : sums) {
      for (const Sum& element : sum) totals[id].push_back(element.total());
    }
    if (table.spec().rule.name == "none") return table.keep(std::move(totals));
    if (table.spec().rule.name == "adam" && !table.spec().rule.lazy) {
      for (std::int64_t id = 0; id < table.spec().rows; ++id) totals.try_emplace(id, dim);
    }
    for (const auto& [id, total] : totals) table.step(id, total, steps_);
  }

  /// Calls visit(id, its part of the gradient) by replica, feature, output row and position.
  template <class Visit>
  void for_each_term(std::size_t t, const Looked& looked, const Given& given, Visit visit) const {
    const TableSpec& spec = tables_[t].spec();
    const auto dim = static_cast<std::size_t>(spec.dim);
    for (std::size_t r = 0; r < looked.size(); ++r) {
      for (std::size_t f = 0; f < features_.size(); ++f) {
        if (features_[f].table != t) continue;
        const std::vector<float>& gradient = given[r][f];
        for (std::size_t i = 0; i < looked[r][f].size(); ++i) {
          const std::vector<Entry>& entries = looked[r][f][i];
          const Range by = denominator(spec.combiner, entries);
          const bool zero = gradient.empty() || vanishes(spec.combiner, entries);
          for (const Entry& entry : entries) {
            Ranges term(dim);
            for (std::size_t c = 0; c < dim && !zero; ++c)
              term[c] = Range(entry.weight) / by * static_cast<double>(gradient[i * dim + c]);
            visit(entry.id, term);
          }
        }
      }
    }
  }

  std::vector<FeatureSpec> features_;
  std::vector<Table> tables_;
  std::int64_t steps_ = 0;
};

}  // namespace embertable::slow
