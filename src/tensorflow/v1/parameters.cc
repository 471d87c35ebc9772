#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "embertable/errors.h"
#include "embertable/tensorflow/v1.h"

namespace embertable::v1 {
namespace {

/// Checks one class of parameters, by its field names.
class Checks {
 public:
  explicit Checks(const char* parameters) : parameters_(parameters) {}

  /// Throws ValueError unless `holds`.
  const Checks& operator()(const char* field, double value, bool holds, const char* rule) const {
    if (std::isnan(value)) refuse(field, "must be given", value);
    if (!holds) refuse(field, rule, value);
    return *this;
  }
  const Checks& given(const char* field, double value) const {
    return (*this)(field, value, true, "");
  }
  const Checks& positive(const char* field, double value) const {
    return (*this)(field, value, value > 0, "must be > 0");
  }
  const Checks& not_negative(const char* field, double value) const {
    return (*this)(field, value, value >= 0, "must be >= 0");
  }
  const Checks& fraction(const char* field, double value) const {
    return (*this)(field, value, value >= 0 && value < 1, "must be in [0, 1)");
  }
  template <class Parameters>
  const Checks& strengths(const Parameters& p) const {
    return not_negative("l1_regularization_strength", p.l1_regularization_strength)
        .not_negative("l2_regularization_strength", p.l2_regularization_strength);
  }

 private:
  void refuse(const char* field, const char* rule, double value) const {
    throw ValueError(fmt::format("{}: {} {}, got {}", parameters_, field, rule, value));
  }
  const char* parameters_;
};

Optimizer make(const AdagradParameters& p) {
  Checks("AdagradParameters")
      .given("learning_rate", p.learning_rate)
      .positive("initial_accumulator", p.initial_accumulator);
  return Optimizer("adagrad", p.learning_rate,
                   {{"initial_accumulator_value", p.initial_accumulator}}, p.options);
}

Optimizer make(const ProximalAdagradParameters& p) {
  Checks("ProximalAdagradParameters")
      .given("learning_rate", p.learning_rate)
      .positive("initial_accumulator", p.initial_accumulator)
      .strengths(p);
  return Optimizer("proximal_adagrad", p.learning_rate,
                   {{"initial_accumulator_value", p.initial_accumulator},
                    {"l1", p.l1_regularization_strength},
                    {"l2", p.l2_regularization_strength}},
                   p.options);
}

Optimizer make(const AdamParameters& p) {
  Checks("AdamParameters")
      .given("learning_rate", p.learning_rate)
      .fraction("beta1", p.beta1)
      .fraction("beta2", p.beta2)
      .positive("epsilon", p.epsilon);
  if (!p.lazy_adam && !p.options.use_gradient_accumulation) {
    throw ValueError(
        "AdamParameters: lazy_adam must be true without use_gradient_accumulation, got false");
  }
  return Optimizer("adam", p.learning_rate,
                   {{"beta_1", p.beta1},
                    {"beta_2", p.beta2},
                    {"epsilon", p.epsilon},
                    {"lazy_adam", p.lazy_adam},
                    {"sum_inside_sqrt", p.sum_inside_sqrt}},
                   p.options);
}

/// An accumulator of 0 is allowed here, for which the rule needs a flag.
Optimizer make(const FtrlParameters& p) {
  Checks("FtrlParameters")
      .given("learning_rate", p.learning_rate)("learning_rate_power", p.learning_rate_power,
                                               p.learning_rate_power <= 0, "must be <= 0")
      .not_negative("initial_accumulator_value", p.initial_accumulator_value)
      .strengths(p);
  return Optimizer(
      "ftrl", p.learning_rate,
      {{"learning_rate_power", p.learning_rate_power},
       {"l1_regularization_strength", p.l1_regularization_strength},
       {"l2_regularization_strength", p.l2_regularization_strength},
       {"beta", p.beta},
       {"initial_accumulator_value", p.initial_accumulator_value},
       {"multiply_linear_by_learning_rate", p.multiply_linear_by_learning_rate},
       {"allow_zero_accumulator", p.allow_zero_accumulator || p.initial_accumulator_value == 0}},
      p.options);
}

Optimizer make(const ProximalYogiParameters& p) {
  Checks("ProximalYogiParameters")
      .given("learning_rate", p.learning_rate)
      .fraction("beta1", p.beta1)
      .fraction("beta2", p.beta2)
      .positive("epsilon", p.epsilon)
      .strengths(p);
  return Optimizer("proximal_yogi", p.learning_rate,
                   {{"beta1", p.beta1},
                    {"beta2", p.beta2},
                    {"epsilon", p.epsilon},
                    {"l1", p.l1_regularization_strength},
                    {"l2", p.l2_regularization_strength},
                    {"initial_accumulator_value", p.initial_accumulator_value}},
                   p.options);
}

Optimizer make(const MomentumParameters& p) {
  Checks("MomentumParameters")
      .given("learning_rate", p.learning_rate)
      .given("momentum", p.momentum);
  return Optimizer("momentum", p.learning_rate,
                   {{"momentum", p.momentum}, {"use_nesterov", p.use_nesterov}}, p.options);
}

Optimizer make(const RMSPropParameters& p) {
  Checks("RMSPropParameters")
      .given("learning_rate", p.learning_rate)
      .given("rho", p.rho)
      .given("momentum", p.momentum)
      .given("epsilon", p.epsilon);
  return Optimizer("rms_prop", p.learning_rate,
                   {{"rho", p.rho}, {"momentum", p.momentum}, {"epsilon", p.epsilon}}, p.options);
}

Optimizer make(const StochasticGradientDescentParameters& p) {
  Checks("StochasticGradientDescentParameters").given("learning_rate", p.learning_rate);
  OptimizerOptions options = p.options;
  options.use_gradient_accumulation =
      options.clip_gradient_min.has_value() || options.clip_gradient_max.has_value();
  return Optimizer("sgd", p.learning_rate, {}, std::move(options));
}

Optimizer make(const FrequencyEstimatorParameters& p) {
  Checks("FrequencyEstimatorParameters")
      .given("tau", p.tau)
      .given("max_delta", p.max_delta)
      .given("outlier_threshold", p.outlier_threshold)
      .given("weight_exponent", p.weight_exponent);
  return Optimizer("frequency_estimator", 1.0,
                   {{"tau", p.tau},
                    {"max_delta", p.max_delta},
                    {"outlier_threshold", p.outlier_threshold},
                    {"weight_exponent", p.weight_exponent}});
}

}  // namespace

Optimizer make_optimizer(const OptimizationParameters& parameters) {
  return std::visit([](const auto& of_class) { return make(of_class); }, parameters);
}

}  // namespace embertable::v1
