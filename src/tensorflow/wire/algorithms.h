#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <variant>

#include "tensorflow/wire/fields.h"

namespace embertable::wire {

using Parameters = decltype(OptimizationParameters::parameters);

/// Describes an alternative of `Parameters`.
struct Algorithm {
  std::string_view name;                       ///< name used by the original's operations
  std::string_view rule;                       ///< name of our rule; "" if it has none
  std::array<std::string_view, 3> slots = {};  ///< in the operations' order, "" after the last
};

/// Indexed by the alternative.
inline constexpr Algorithm kAlgorithms[] = {
    {},
    {"Adagrad", "adagrad", {"accumulators"}},
    {"StochasticGradientDescent", "sgd"},
    {"FTRL", "ftrl", {"accumulators", "linears"}},
    {"ADAM", "adam", {"momenta", "velocities"}},
    {"Momentum", "momentum", {"momenta"}},
    {"RMSProp", "rms_prop", {"ms", "mom"}},
    {"CenteredRMSProp", "centered_rms_prop", {"ms", "mom", "mg"}},
    {"MDLAdagradLight", "mdl_adagrad_light", {"accumulators", "weights", "benefits"}},
    {"Adadelta", "adadelta", {"accumulators", "updates"}},
    {"ProximalAdagrad", "proximal_adagrad", {"accumulators"}},
    {"BoundedAdagrad", "bounded_adagrad", {"accumulators"}},
    {"OnlineYogi", "online_yogi", {"vs", "linears"}},
    {"ProximalYogi", "proximal_yogi", {"v", "m"}},
    {"FrequencyEstimator", "frequency_estimator", {"last_hit_step"}},
    {"UserDefinedProgram", ""},
    {"Assign", "assign"},
    {"AdagradMomentum", "adagrad_momentum", {"accumulators", "momenta"}},
    {"Lion", "lion", {"momenta"}},
    {"FrequencyAwareAdagrad", "frequency_aware_adagrad", {"accumulators", "counters"}},
};
static_assert(std::size(kAlgorithms) == std::variant_size_v<Parameters>);

/// A flag that means the opposite in the rule.
template <class Flag>
struct Inverted {
  Flag& flag;
};
template <class Flag>
Inverted(Flag&) -> Inverted<Flag>;

// each_parameter(message, f) calls f(name of the rule's parameter, member) for every parameter that
// an algorithm's message and its rule have in common. What they call alike follows from the fields.

template <class Message>
void each_parameter(Message& m, auto&& f) {
  each_field(m, [&](int, std::string_view name, auto& member) { f(name, member); });
}

void each_parameter(Is<FtrlParameters> auto& m, auto&& f) {
  f("l1_regularization_strength", m.l1);
  f("l2_regularization_strength", m.l2);
  f("learning_rate_power", m.lr_power);
  f("multiply_linear_by_learning_rate", m.multiply_linear_by_lr);
  f("beta", m.beta);
  f("allow_zero_accumulator", m.allow_zero_accumulator);
}

void each_parameter(Is<AdamParameters> auto& m, auto&& f) {
  f("beta_1", m.beta1);
  f("beta_2", m.beta2);
  f("epsilon", m.epsilon);
  f("lazy_adam", Inverted{m.use_non_lazy_adam});
  f("sum_inside_sqrt", m.use_sum_inside_sqrt);
}

}  // namespace embertable::wire
