#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/entries.h"
#include "base/float_environment.h"
#include "optimizer/rule.h"
#include "testing/engine/scene.h"
#include "testing/slow_bfloat16.h"

namespace embertable::engine_fixture {

/// A scene's tables, looked up and trained one float at a time in the order that the design
/// promises: what an engine must give to the last bit, NaN counting as one value. Three rules are
/// written out here, with limits and decay; the others step row by row in their scalar form.
class Model {
 public:
  explicit Model(const Scene& scene) : scene_(scene) {
    for (const Scene::Table& table : scene.tables) {
      State& state = tables_.emplace_back();
      const auto rows = static_cast<std::size_t>(table.config->vocabulary_size);
      state.rows = table.first_rows;
      if (is_half(table))
        for (float& x : state.rows) x = slow::nearest_bfloat16(x);
      for (const RuleSlot& slot : rule_of(table.optimizer).slots(table.optimizer)) {
        const std::int64_t width = slot.row_wise ? 1 : table.config->dim;
        state.slots.push_back({std::string(slot.name), width,
                               F(rows * static_cast<std::size_t>(width), slot.initial_value)});
      }
    }
  }

  struct Slot {
    std::string name;
    std::int64_t width;
    F values;
    float* of(std::size_t id) { return values.data() + id * static_cast<std::size_t>(width); }
  };
  struct State {
    F rows;
    std::vector<Slot> slots;
  };
  State& table(std::size_t t) { return tables_[t]; }

  /// Sets a row as an assignment does.
  void assign(std::size_t t, std::int64_t id, F values) {
    if (is_half(scene_.tables[t]))
      for (float& x : values) x = slow::nearest_bfloat16(x);
    std::copy(values.begin(), values.end(),
              tables_[t].rows.begin() + id * static_cast<std::int64_t>(values.size()));
  }

  /// Inputs of one step, by replica; activations are [replica * features + feature].
  using Inputs = std::vector<const std::vector<Input>*>;
  std::vector<F> forward(const Inputs& inputs) const {
    const FloatEnvironment ours;
    std::vector<F> all;
    for (const std::vector<Input>* replica : inputs) {
      for (std::size_t f = 0; f < scene_.features.size(); ++f)
        all.push_back(forward(scene_.features[f].table, (*replica)[f]));
    }
    return all;
  }

  /// One step with gradients like the activations, an empty one counting as zeros. `rate` is that
  /// of the tables whose optimizer is sgd(0.1).
  void update(const Inputs& inputs, const std::vector<F>& gradients, float rate) {
    const FloatEnvironment ours;
    ++steps_;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const Optimizer& own = scene_.tables[t].optimizer;
      const float its = own == sgd(0.1) ? rate : static_cast<float>(own.learning_rate().constant());
      if (!own.options().use_gradient_accumulation) {
        std::map<std::int64_t, std::uint64_t> times;
        for_each_entry(t, inputs, gradients,
                       [&](std::int64_t id, const F& term, std::int64_t, std::size_t) {
                         apply(t, static_cast<std::size_t>(id), term, its, times[id]++);
                       });
        continue;
      }
      const std::vector<RowSum> sums = add_up(t, inputs, gradients);
      const bool every_row = rule_of(own).steps_every_row(own);
      for (std::size_t id = 0; id < sums.size(); ++id) {
        if (!sums[id].piece.empty()) {
          apply(t, id, sums[id].total(), its);
        } else if (every_row) {
          apply(t, id, F(dim_of(t), 0.0f), its);
        }
      }
    }
  }

 private:
  /// The gradient of one row as it adds up.
  struct RowSum {
    F piece, replica, all;
    std::int64_t piece_number = -1;
    std::size_t replica_number = 0;

    static void add(F& sum, const F& term) {
      if (sum.empty()) {
        sum = term;
      } else {
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] = sum[c] + term[c];
      }
    }
    void add(const F& term, std::int64_t number, std::size_t r) {
      if (!piece.empty() && number != piece_number) {
        add(replica, piece);
        piece.clear();
        if (r != replica_number) {
          add(all, replica);
          replica.clear();
        }
      }
      add(piece, term);
      piece_number = number;
      replica_number = r;
    }
    F total() const {
      RowSum copy = *this;
      add(copy.replica, copy.piece);
      add(copy.all, copy.replica);
      return copy.all;
    }
  };

  std::size_t dim_of(std::size_t t) const {
    return static_cast<std::size_t>(scene_.tables[t].config->dim);
  }

  static float denominator(Combiner combiner, const std::vector<Entry>& entries) {
    if (combiner == Combiner::kSum) return 1;
    float sum = 0;
    for (std::size_t k = 0; k < entries.size(); ++k) {
      const auto w = static_cast<float>(entries[k].weight);
      const float term = combiner == Combiner::kMean ? w : w * w;
      sum = k == 0 ? term : sum + term;
    }
    return combiner == Combiner::kMean ? sum : std::sqrt(sum);
  }

  F forward(std::size_t t, const Input& input) const {
    const std::size_t dim = dim_of(t);
    const Combiner combiner = scene_.tables[t].config->combiner;
    F out;
    for (const std::vector<Entry>& entries : input.entries) {
      F sum(dim, 0.0f);
      const float by = denominator(combiner, entries);
      for (std::size_t k = 0; k < entries.size() && by != 0; ++k) {
        const float* row = tables_[t].rows.data() + static_cast<std::size_t>(entries[k].id) * dim;
        for (std::size_t c = 0; c < dim; ++c) {
          const float term = static_cast<float>(entries[k].weight) * row[c];
          sum[c] = k == 0 ? term : sum[c] + term;
        }
      }
      if (by != 0 && !entries.empty())
        for (float& x : sum) x = x / by;
      out.insert(out.end(), sum.begin(), sum.end());
    }
    return out;
  }

  std::vector<RowSum> add_up(std::size_t t, const Inputs& inputs,
                             const std::vector<F>& gradients) const {
    std::vector<RowSum> sums(scene_.tables[t].config->vocabulary_size);
    for_each_entry(t, inputs, gradients,
                   [&](std::int64_t id, const F& term, std::int64_t piece, std::size_t r) {
                     sums[id].add(term, piece, r);
                   });
    return sums;
  }

  /// Calls visit(id, its part of the gradient, piece, replica) in canonical order.
  template <class Visit>
  void for_each_entry(std::size_t t, const Inputs& inputs, const std::vector<F>& gradients,
                      Visit visit) const {
    const std::size_t dim = dim_of(t);
    const Combiner combiner = scene_.tables[t].config->combiner;
    std::int64_t piece = 0;
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      for (std::size_t f = 0; f < scene_.features.size(); ++f) {
        if (scene_.features[f].table != t) continue;
        const std::vector<std::vector<Entry>>& outputs = (*inputs[r])[f].entries;
        const F& gradient = gradients[r * scene_.features.size() + f];
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const float by = denominator(combiner, outputs[i]);
          for (const Entry& entry : outputs[i]) {
            F term(dim, 0.0f);  // what a row gets from an output row that is zeros by rule
            for (std::size_t c = 0; c < dim && by != 0; ++c)
              term[c] = static_cast<float>(entry.weight) / by *
                        (gradient.empty() ? 0.0f : gradient[i * dim + c]);
            visit(entry.id, term, piece + static_cast<std::int64_t>(i) / kPieceRows, r);
          }
        }
        piece += static_cast<std::int64_t>(outputs.size()) / kPieceRows + 1;
      }
    }
  }

  static void clip(float* values, std::size_t count, const std::optional<double>& low,
                   const std::optional<double>& high) {
    for (std::size_t c = 0; c < count; ++c) {
      if (low && values[c] < static_cast<float>(*low)) values[c] = static_cast<float>(*low);
      if (high && values[c] > static_cast<float>(*high)) values[c] = static_cast<float>(*high);
    }
  }

  static bool is_half(const Scene::Table& table) {
    return table.config->row_type == RowType::kBfloat16;
  }

  /// One step of one row, which has taken `occurrence` steps before in this step.
  void apply(std::size_t t, std::size_t id, const F& g, float rate, std::uint64_t occurrence = 0) {
    apply_in_float(t, id, g, rate);
    if (!is_half(scene_.tables[t])) return;
    const slow::Rounding rounding = {.table = *scene_.tables[t].config->name,
                                     .step = static_cast<std::uint64_t>(steps_),
                                     .row = id,
                                     .occurrence = occurrence};
    const OptimizerOptions& options = scene_.tables[t].optimizer.options();
    const auto least = static_cast<float>(options.clip_weight_min.value_or(-INFINITY));
    const auto most = static_cast<float>(options.clip_weight_max.value_or(INFINITY));
    float* const row = tables_[t].rows.data() + id * g.size();
    for (std::size_t c = 0; c < g.size(); ++c)
      row[c] = rounding.between(row[c], static_cast<std::uint32_t>(c), least, most);
  }

  void apply_in_float(std::size_t t, std::size_t id, F g, float rate) {
    const Optimizer& optimizer = scene_.tables[t].optimizer;
    const OptimizerOptions& options = optimizer.options();
    const std::size_t dim = g.size();
    float* row = tables_[t].rows.data() + id * dim;
    if (!is_written_out(optimizer)) return apply_scalar_form(t, id, g, rate);
    clip(g.data(), dim, options.clip_gradient_min, options.clip_gradient_max);
    if (options.weight_decay_factor != 0) {
      auto decay = static_cast<float>(options.weight_decay_factor);
      if (options.multiply_weight_decay_factor_by_learning_rate) decay = decay * rate;
      for (std::size_t c = 0; c < dim; ++c) row[c] = row[c] - decay * row[c];
    }
    apply_rule(t, id, g, rate);
    clip(row, dim, options.clip_weight_min, options.clip_weight_max);
  }

  static bool is_written_out(const Optimizer& optimizer) {
    const std::string& rule = optimizer.rule();
    return rule == "sgd" || rule == "adagrad" ||
           (rule == "rowwise_adagrad" && optimizer == plain_rowwise(optimizer));
  }
  /// The same but for parameters that are not written out.
  static Optimizer plain_rowwise(const Optimizer& optimizer) {
    return Optimizer(
        "rowwise_adagrad", optimizer.learning_rate(),
        {{"initial_accumulator_value", optimizer.parameter("initial_accumulator_value")},
         {"epsilon", optimizer.parameter("epsilon")}},
        optimizer.options());
  }

  void apply_scalar_form(std::size_t t, std::size_t id, const F& g, float rate) {
    State& state = tables_[t];
    const Optimizer& optimizer = scene_.tables[t].optimizer;
    const Rule& rule = rule_of(optimizer);
    const StepScalars step = rule.begin_step(
        optimizer,
        {.learning_rate = rate, .step = steps_, .step_counter = static_cast<float>(steps_)});
    float* const row[] = {state.rows.data() + id * g.size()};
    const float* const gradient[] = {g.data()};
    float* slots[kMaxSlots][1] = {};
    RowTile tile = {.row = row,
                    .slot = {},
                    .gradient = gradient,
                    .rows = 1,
                    .dim = static_cast<std::int32_t>(g.size())};
    for (std::size_t s = 0; s < state.slots.size(); ++s) {
      slots[s][0] = state.slots[s].of(id);
      tile.slot[s] = slots[s];
    }
    rule.update_rows(SimdLevel::kScalar, optimizer)(tile, step);
  }

  void apply_rule(std::size_t t, std::size_t id, const F& g, float rate) {
    State& state = tables_[t];
    const Optimizer& optimizer = scene_.tables[t].optimizer;
    const std::size_t dim = g.size();
    float* row = state.rows.data() + id * dim;
    float* slot = state.slots.empty() ? nullptr : state.slots[0].of(id);
    if (optimizer.rule() == "sgd") {
      for (std::size_t c = 0; c < dim; ++c) row[c] = row[c] - rate * g[c];
    } else if (optimizer.rule() == "adagrad") {
      for (std::size_t c = 0; c < dim; ++c) {
        slot[c] = slot[c] + g[c] * g[c];
        const float n = rate * g[c];
        row[c] = row[c] - (n == 0 ? 0.0f : n / std::sqrt(slot[c]));
      }
    } else {
      slot[0] = slot[0] + sum_of_squares(g) / static_cast<float>(dim);
      const float k =
          rate / (std::sqrt(slot[0]) + static_cast<float>(optimizer.parameter("epsilon")));
      for (std::size_t c = 0; c < dim; ++c) row[c] = row[c] - k * g[c];
    }
  }

  /// 16 lanes from +0, folded by halves.
  static float sum_of_squares(const F& g) {
    F lane(16, 0.0f);
    for (std::size_t c = 0; c < g.size(); ++c) lane[c % 16] = lane[c % 16] + g[c] * g[c];
    for (std::size_t half = 8; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
    return lane[0];
  }

  const Scene& scene_;
  std::vector<State> tables_;
  std::int64_t steps_ = 0;
};

/// Where the bits of two arrays first differ, NaN counting as one value; "" if they do not.
inline std::string difference(std::span<const float> got, std::span<const float> expected) {
  if (got.size() != expected.size())
    return std::to_string(got.size()) + " floats instead of " + std::to_string(expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(expected[i])) continue;
    if (std::memcmp(&got[i], &expected[i], sizeof got[i]) == 0) continue;
    std::ostringstream text;
    text << std::hexfloat << "element " << i << " is " << got[i] << " instead of " << expected[i];
    return text.str();
  }
  return "";
}

}  // namespace embertable::engine_fixture
