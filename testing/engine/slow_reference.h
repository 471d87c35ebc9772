#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/engine/slow_input.h"
#include "testing/engine/slow_range.h"

namespace embertable::slow {

// An embedding engine as its rules describe it, one number at a time and without any code of the
// library: ids become lists of entries (slow_input.h), entries become activations, gradients become
// steps.

using Ranges = std::vector<Range>;

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
    const std::size_t full = spec.rows * spec.dim;
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
        w[c] = w[c] - change(id * spec_.dim + c, g[c], rate);
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

  Range& slot(const std::string& name, std::int64_t element) { return slots_.at(name)[element]; }

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
    for (std::int64_t c = 0; c < spec_.dim; ++c) w[c] = w[c] - by * g[c];
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
          sum.add(entry.weight * table.rows()[entry.id * spec.dim + c]);
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
    const std::size_t dim = table.spec().dim;
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
    const std::size_t dim = spec.dim;
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
