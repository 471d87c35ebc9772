// Sources of the formulas: TensorFlow's kernels and optimization_parameters.proto for what they
// have; FBGEMM 1.9 for adamw, lamb, lars_sgd and the row-wise ones.

#include "apps/selftest/references.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace embertable::selftest {
namespace {

using Gradient = std::span<const double>;

double square(double x) { return x * x; }
double sign(double x) { return static_cast<double>((x > 0) - (x < 0)); }
double quotient(double n, double d) { return n == 0 ? 0 : n / d; }
double average(double share, double old, double value) { return share * old + (1 - share) * value; }

double sum_of_squares(std::span<const double> values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return sum;
}
double norm(std::span<const double> values) { return std::sqrt(sum_of_squares(values)); }
double mean_square(std::span<const double> values) {
  return sum_of_squares(values) / static_cast<double>(values.size());
}

/// Returns |x| less `by`, not below 0, with the sign of x.
double shrunk(double x, double by) { return std::copysign(std::max(std::abs(x) - by, 0.0), x); }

void sgd(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) at.row[i] -= with.learning_rate * g[i];
}

void adagrad(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& a = at.slots[0][i] += square(g[i]);
    at.row[i] -= quotient(with.learning_rate * g[i], std::sqrt(a));
  }
}

void adagrad_momentum(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double momentum = with["momentum"];
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &a = at.slots[0][i], &m = at.slots[1][i];
    a = with["beta2"] == 1 ? a + square(g[i]) : average(with["beta2"], a, square(g[i]));
    const double q = g[i] / std::pow(a + with["epsilon"], 1 / with["exponent"]);
    m = momentum * m + q;
    at.row[i] -= with.learning_rate * (with["use_nesterov"] != 0 ? momentum * m + q : m);
  }
}

void bounded_adagrad(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& a = at.slots[0][i];
    const double before = a;
    a += square(g[i]);
    if (with["max_accumulator"] > 0) a = std::min(a, with["max_accumulator"]);
    double u = quotient(with.learning_rate * g[i],
                        std::sqrt(with["update_accumulator_first"] != 0 ? a : before));
    const double most = with["max_var_update"];
    if (most > 0) u = std::clamp(u, -most, most);
    at.row[i] -= u;
  }
}

void frequency_aware_adagrad(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &a = at.slots[0][i], &count = at.slots[1][i], &w = at.row[i];
    count += 1;
    a = std::max(with["accumulator_decay"] * a + square(g[i]), with["initial_accumulator_value"]);
    const double scale =
        std::min(std::pow(std::max(with.step, 1.0) / count, with["probability_exponent"]),
                 with["max_lr_multiplier"]);
    const double u = g[i] * scale / std::sqrt(a) + with["l1_regularization_strength"] * sign(w) +
                     with["l2_regularization_strength"] * w;
    w -= with.learning_rate * u;
  }
}

void ftrl(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double rate = with.learning_rate, power = -with["learning_rate_power"];
  const bool multiplied = with["multiply_linear_by_learning_rate"] != 0;
  const double l1 = with["l1_regularization_strength"] * (multiplied ? rate : 1);
  const double l2 = with["l2_regularization_strength"], beta = with["beta"];
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &a = at.slots[0][i], &z = at.slots[1][i];
    const double before = std::pow(a, power);
    a += square(g[i]);
    const double now = std::pow(a, power);
    z += multiplied ? rate * g[i] - (now - before) * at.row[i]
                    : g[i] - (now - before) * at.row[i] / rate;
    const double divisor = multiplied ? now + 2 * rate * l2 + beta : (now + beta) / rate + 2 * l2;
    at.row[i] = quotient(std::clamp(z, -l1, l1) - z, divisor);
  }
}

void adam(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double epsilon = with["epsilon"];
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &m = at.slots[0][i], &v = at.slots[1][i];
    m = average(with["beta_1"], m, g[i]);
    v = average(with["beta_2"], v, square(g[i]));
    at.row[i] -=
        with.learning_rate * m /
        (with["sum_inside_sqrt"] != 0 ? std::sqrt(v + square(epsilon)) : std::sqrt(v) + epsilon);
  }
}

void momentum(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& m = at.slots[0][i];
    m = with["momentum"] * m + g[i];
    at.row[i] -= with.learning_rate * (with["use_nesterov"] != 0 ? g[i] + with["momentum"] * m : m);
  }
}

void lion(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& m = at.slots[0][i];
    at.row[i] -= with.learning_rate * sign(average(with["beta1"], m, g[i]));
    m = average(with["beta2"], m, g[i]);
  }
}

void rms_prop(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &ms = at.slots[0][i], &mom = at.slots[1][i];
    ms = average(with["rho"], ms, square(g[i]));
    mom = with["momentum"] * mom + with.learning_rate * g[i] / std::sqrt(ms + with["epsilon"]);
    at.row[i] -= mom;
  }
}

void centered_rms_prop(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &ms = at.slots[0][i], &mom = at.slots[1][i], &mg = at.slots[2][i];
    ms = average(with["rho"], ms, square(g[i]));
    mg = average(with["rho"], mg, g[i]);
    const double variance = std::max(ms - square(mg), 0.0);
    mom =
        with["momentum"] * mom + with.learning_rate * g[i] / std::sqrt(variance + with["epsilon"]);
    at.row[i] -= mom;
  }
}

/// Without benefits, this is all that remains of the paper's profile.
void mdl_adagrad_light(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &a = at.slots[0][i], &x = at.slots[1][i];
    a += square(g[i]);
    x -= with.learning_rate * g[i] * std::pow(a, with["lr_power"]);
    at.row[i] = x;
  }
}

void adadelta(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &a = at.slots[0][i], &updates = at.slots[1][i];
    a = average(with["rho"], a, square(g[i]));
    const double u = std::sqrt(updates + with["epsilon"]) / std::sqrt(a + with["epsilon"]) * g[i];
    at.row[i] -= with.learning_rate * u;
    updates = average(with["rho"], updates, square(u));
  }
}

void proximal_adagrad(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& a = at.slots[0][i] += square(g[i]);
    const double eta = with.learning_rate / std::sqrt(a);
    at.row[i] = shrunk(at.row[i] - eta * g[i], eta * with["l1"]) / (1 + with["l2"] * eta);
  }
}

void online_yogi(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double rate = with.learning_rate, l1 = with["l1"];
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &v = at.slots[0][i], &z = at.slots[1][i];
    const double before = std::sqrt(v), q = square(g[i]);
    v += (1 - with["beta2"]) * (q >= v ? 1 : -1) * q;
    z += g[i] - (std::sqrt(v) - before) / rate * at.row[i];
    at.row[i] = quotient(std::clamp(z, -l1, l1) - z, std::sqrt(v) / rate + 2 * with["l2"]);
  }
}

void proximal_yogi(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &v = at.slots[0][i], &m = at.slots[1][i];
    m = average(with["beta1"], m, g[i]);
    v += (1 - with["beta2"]) * sign(square(g[i]) - v) * square(g[i]);
    const double eta = with.learning_rate / (std::sqrt(v) + with["epsilon"]);
    at.row[i] = shrunk(at.row[i] - eta * m, eta * with["l1"]) / (1 + with["l2"] * eta);
  }
}

void frequency_estimator(const ReferenceStep& with, ReferenceRow& at, Gradient) {
  double &last = at.slots[0][0], &d = at.row[0];
  const double delta = with.learning_rate - last, tau = with["tau"];
  const double capped = std::min(delta, with["max_delta"]);
  d = delta >= with["outlier_threshold"] * d ? capped : d * (1 - tau) + capped * tau;
  last = with.learning_rate;
}

void assign(const ReferenceStep&, ReferenceRow& at, Gradient g) {
  std::ranges::copy(g, at.row.begin());
}

void none(const ReferenceStep&, ReferenceRow&, Gradient) {}

void rowwise_adagrad(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double decay = with["weight_decay"];
  const auto mode = static_cast<int>(with["weight_decay_mode"]);  // none, l2, decoupled
  std::vector<double> decayed(g.begin(), g.end());
  for (std::size_t i = 0; i < g.size() && mode == 1; ++i) decayed[i] += decay * at.row[i];
  double& a = at.slots[0][0] += mean_square(decayed);
  const double rate = with.learning_rate / (std::sqrt(a) + with["epsilon"]);
  for (std::size_t i = 0; i < g.size(); ++i) {
    if (mode == 2) at.row[i] -= with.learning_rate * decay * at.row[i];
    at.row[i] -= rate * decayed[i];
  }
}

/// Returns mh / (sqrt(vh) + epsilon) + wd*w of Adam's variants. Uses counters of rows if there are
/// any.
std::vector<double> corrected(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  double t = with.step;
  if (at.slots.size() > 2) t = at.slots[2][0] += 1;
  const double first = 1 - std::pow(with["beta1"], t), second = 1 - std::pow(with["beta2"], t);
  const bool row_wise = at.slots[1].size() == 1 && g.size() > 1;
  if (row_wise) at.slots[1][0] = average(with["beta2"], at.slots[1][0], mean_square(g));
  std::vector<double> x(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    double &m = at.slots[0][i], &v = at.slots[1][row_wise ? 0 : i];
    m = average(with["beta1"], m, g[i]);
    if (!row_wise) v = average(with["beta2"], v, square(g[i]));
    x[i] = m / first / (std::sqrt(v / second) + with["epsilon"]) + with["weight_decay"] * at.row[i];
  }
  return x;
}

void adamw(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const std::vector<double> x = corrected(with, at, g);
  for (std::size_t i = 0; i < g.size(); ++i) at.row[i] -= with.learning_rate * x[i];
}

void lamb(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const std::vector<double> x = corrected(with, at, g);
  const double ratio = quotient(norm(at.row), norm(x));
  for (std::size_t i = 0; i < g.size() && norm(x) != 0; ++i)
    at.row[i] -= with.learning_rate * ratio * x[i];
}

void lars_sgd(const ReferenceStep& with, ReferenceRow& at, Gradient g) {
  const double decay = with["weight_decay"], length = norm(at.row);
  const double divisor = norm(g) + decay * length;
  const double ratio = divisor == 0 ? 0 : with.learning_rate * with["eta"] * length / divisor;
  for (std::size_t i = 0; i < g.size(); ++i) {
    double& m = at.slots[0][i];
    m = with["momentum"] * m + ratio * (g[i] + decay * at.row[i]);
    at.row[i] -= m;
  }
}

std::vector<Reference> make_references() {
  const std::vector<Optimizer::Settings> adam_like = {
      {{"beta1", 0.5}, {"beta2", 0.9}, {"epsilon", 1e-3}, {"weight_decay", 0.1}}};
  const std::vector<Optimizer::Settings> adamw_like = {
      adam_like[0], {{"weight_decay", 0.02}, {"use_rowwise_bias_correction", true}}};
  const std::vector<Optimizer::Settings> rms_like = {
      {{"rho", 0.95}, {"momentum", 0.5}, {"epsilon", 1e-3}}};
  std::vector<Reference> all = {
      {"adadelta", adadelta, {{{"rho", 0.9}, {"epsilon", 0.01}}}},
      {"adagrad", adagrad, {{{"initial_accumulator_value", 1}}}},
      {"adagrad_momentum",
       adagrad_momentum,
       {{{"momentum", 0.9}, {"use_nesterov", true}, {"exponent", 4}, {"epsilon", 0.01}},
        {{"momentum", 0.5}, {"exponent", 3}, {"beta2", 0.9}, {"epsilon", 0.1}},
        {{"exponent", 1}, {"epsilon", 0.1}}}},
      {"adam",
       adam,
       {{{"beta_1", 0.5}, {"beta_2", 0.9}, {"epsilon", 0.01}, {"sum_inside_sqrt", false}},
        {{"lazy_adam", false}}}},
      {"adamw", adamw, adamw_like},
      {"assign", assign, {}},
      {"bounded_adagrad",
       bounded_adagrad,
       {{{"max_accumulator", 2}, {"max_var_update", 0.04}},
        {{"max_accumulator", 1.5}, {"update_accumulator_first", true}}}},
      {"centered_rms_prop", centered_rms_prop, rms_like},
      {"frequency_aware_adagrad",
       frequency_aware_adagrad,
       {{{"l1_regularization_strength", 0.01},
         {"l2_regularization_strength", 0.02},
         {"max_lr_multiplier", 1.5},
         {"probability_exponent", 0.3},
         {"accumulator_decay", 0.5}}}},
      {"frequency_estimator",
       frequency_estimator,
       {{{"tau", 0.1}, {"max_delta", 5}, {"outlier_threshold", 2}}},
       [](double step) { return 3 * step; }},
      {"ftrl",
       ftrl,
       {{{"l1_regularization_strength", 0.3}, {"l2_regularization_strength", 0.1}, {"beta", 1}},
        {{"learning_rate_power", -0.4}, {"multiply_linear_by_learning_rate", true}},
        {{"learning_rate_power", -1},
         {"multiply_linear_by_learning_rate", true},
         {"l1_regularization_strength", 0.3},
         {"l2_regularization_strength", 0.1},
         {"beta", 0.5}}}},
      {"lamb", lamb, adam_like},
      {"lars_sgd", lars_sgd, {{{"eta", 0.1}, {"momentum", 0.5}, {"weight_decay", 0.1}}}},
      {"lion", lion, {{{"beta1", 0.5}, {"beta2", 0.9}}, {{"use_non_lazy_lion", true}}}},
      {"mdl_adagrad_light", mdl_adagrad_light, {{{"lr_power", -0.25}}}},
      {"momentum", momentum, {{{"momentum", 0.5}, {"use_nesterov", true}}}},
      {"none", none, {}},
      {"online_yogi", online_yogi, {{{"l1", 0.05}, {"l2", 0.5}, {"beta2", 0.5}}}},
      {"partial_rowwise_adam", adamw, adam_like},
      {"partial_rowwise_lamb", lamb, adam_like},
      {"proximal_adagrad", proximal_adagrad, {{{"l1", 0.1}, {"l2", 0.5}}}},
      {"proximal_yogi", proximal_yogi, {{{"l1", 0.1}, {"l2", 0.5}, {"beta2", 0.9}}}},
      {"rms_prop", rms_prop, rms_like},
      {"rowwise_adagrad",
       rowwise_adagrad,
       {{{"weight_decay", 0.1}, {"weight_decay_mode", "l2"}},
        {{"weight_decay", 0.1}, {"weight_decay_mode", "decoupled"}, {"epsilon", 0.01}}}},
      {"sgd", sgd, {}},
  };
  std::ranges::sort(all, {}, &Reference::rule);
  return all;
}

}  // namespace

std::span<const Reference> references() {
  static const std::vector<Reference> all = make_references();
  return all;
}

const Reference* find_reference(std::string_view rule) {
  const auto found = std::ranges::find(references(), rule, &Reference::rule);
  return found == references().end() ? nullptr : &*found;
}

}  // namespace embertable::selftest
