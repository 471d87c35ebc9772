#include "optimizer/variants.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/did_you_mean.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

// What a note has to say of several.
constexpr const char* kSame = "the same";
constexpr const char* kLazy =
    "the same on the rows of a batch; there the moments of all other rows decay and move them too";
constexpr const char* kLazyAverages =
    "the same on the rows of a batch; there the averages of all other rows decay too";
constexpr const char* kLazyAndEpsilon =
    "on the rows of a batch the same but for epsilon, which is times sqrt(1-beta2^t) here: seen "
    "only where gradients are as small as epsilon; there the moments of all other rows decay and "
    "move them too";
constexpr const char* kSmallEpsilon =
    "an accumulator starts at the square of the epsilon 1e-10 that is added to its root there, at "
    "0: seen only where the root is below 1e-3";
constexpr const char* kEpsilonInStart =
    "the same: the epsilon that is added to the accumulator there is part of its first value, "
    "0.1 + 1e-7";
constexpr const char* kCallersCorrection =
    "the same; bias correction is in the rate, which there it is by default: give it as a function";
constexpr const char* kRatioOfZero =
    "the same, but a row of zeros stays: there the ratio of the norms is 1 for it";

std::vector<OptimizerVariant> make_variants() {
  const Optimizer::Settings adam_like = {
      {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0}};
  const auto adam_with = [](double epsilon, double decay) {
    return Optimizer::Settings{
        {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", epsilon}, {"weight_decay", decay}};
  };
  std::vector<OptimizerVariant> all = {
      {"fbgemm.adam", "adamw", adam_like, kSame},
      {"fbgemm.lamb", "lamb", adam_like, "the same; norms of 0 make no step, there NaN"},
      {"fbgemm.lars_sgd",
       "lars_sgd",
       {{"eta", 0.001}, {"momentum", 0.9}, {"weight_decay", 0}},
       "the same; norms of 0 make no step of the gradient, there NaN"},
      {"fbgemm.none", "none", {}, kSame},
      {"fbgemm.partial_rowwise_adam", "partial_rowwise_adam", adam_like, kSame},
      {"fbgemm.partial_rowwise_lamb", "partial_rowwise_lamb", adam_like,
       "the same; norms of 0 make no step, there NaN"},
      {"fbgemm.rowwise_adagrad",
       "rowwise_adagrad",
       {{"initial_accumulator_value", 0}, {"epsilon", 1e-8}},
       kSame},
      {"fbgemm.sgd", "sgd", {}, kSame},
      {"keras.Adadelta", "adadelta", {{"rho", 0.95}, {"epsilon", 1e-7}}, kLazyAverages},
      {"keras.Adagrad", "adagrad", {{"initial_accumulator_value", 0.1000001}}, kEpsilonInStart},
      {"keras.Adam", "adamw", adam_with(1e-7, 0), kLazyAndEpsilon},
      {"keras.AdamW", "adamw", adam_with(1e-7, 0.004), kLazyAndEpsilon},
      {"keras.Ftrl",
       "ftrl",
       {{"learning_rate_power", -0.5},
        {"l1_regularization_strength", 0},
        {"l2_regularization_strength", 0},
        {"beta", 0},
        {"initial_accumulator_value", 0.1},
        {"multiply_linear_by_learning_rate", false}},
       "the same; l2_shrinkage_regularization_strength is not offered"},
      {"keras.Lion",
       "lion",
       {{"beta1", 0.9}, {"beta2", 0.99}, {"use_non_lazy_lion", false}},
       kLazy},
      {"keras.RMSprop",
       "rms_prop",
       {{"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-7}},
       "the same on the rows of a batch, epsilon inside the root; there the averages of all other "
       "rows decay too"},
      {"keras.RMSprop.centered",
       "centered_rms_prop",
       {{"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-7}},
       "as keras.RMSprop, with centered=True; a variance below 0 counts as 0, there NaN"},
      {"keras.SGD", "sgd", {}, kSame},
      {"optax.adadelta", "adadelta", {{"rho", 0.9}, {"epsilon", 1e-6}}, kLazyAverages},
      {"optax.adagrad", "adagrad", {{"initial_accumulator_value", 0.1000001}}, kEpsilonInStart},
      {"optax.adam", "adamw", adam_with(1e-8, 0), kLazy},
      {"optax.adamw", "adamw", adam_with(1e-8, 1e-4), kLazy},
      {"optax.lamb", "lamb", adam_with(1e-6, 0), kRatioOfZero},
      {"optax.lion",
       "lion",
       {{"beta1", 0.9}, {"beta2", 0.99}, {"use_non_lazy_lion", false}},
       "as keras.Lion; the decay of 1e-3 there is weight_decay_factor=1e-3 with "
       "multiply_weight_decay_factor_by_learning_rate"},
      {"optax.rmsprop",
       "rms_prop",
       {{"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-8}},
       kLazyAverages},
      {"optax.sgd", "sgd", {}, kSame},
      {"sparsecore.adagrad", "adagrad", {{"initial_accumulator_value", 0.1}}, kSame},
      {"sparsecore.adam", "adamw", adam_like, "the same, bias correction and epsilon included"},
      {"sparsecore.ftrl",
       "ftrl",
       {{"learning_rate_power", -0.5},
        {"l1_regularization_strength", 0},
        {"l2_regularization_strength", 0},
        {"beta", 0},
        {"initial_accumulator_value", 0.1},
        {"multiply_linear_by_learning_rate", false}},
       "the same; 0 / 0 counts as 0, there NaN"},
      {"sparsecore.sgd", "sgd", {}, kSame},
      {"tf.Adadelta", "adadelta", {{"rho", 0.95}, {"epsilon", 1e-8}}, kSame},
      {"tf.Adagrad", "adagrad", {{"initial_accumulator_value", 0.1}}, kSame},
      {"tf.Momentum", "momentum", {{"momentum", 0.9}, {"use_nesterov", false}}, kSame},
      {"tf.ProximalAdagrad",
       "proximal_adagrad",
       {{"initial_accumulator_value", 0.1}, {"l1", 0}, {"l2", 0}},
       kSame},
      {"tf.tpu.Adagrad", "adagrad", {{"initial_accumulator_value", 0.1}}, kSame},
      {"tf.tpu.AdagradMomentum",
       "adagrad_momentum",
       {{"momentum", 0},
        {"use_nesterov", false},
        {"exponent", 2},
        {"beta2", 1},
        {"epsilon", 1e-10}},
       kSame},
      {"tf.tpu.Adam",
       "adam",
       {{"beta_1", 0.9},
        {"beta_2", 0.999},
        {"epsilon", 1e-7},
        {"lazy_adam", true},
        {"sum_inside_sqrt", true}},
       "the same: epsilon^2 inside the root, no bias correction"},
      {"tf.tpu.FTRL",
       "ftrl",
       {{"learning_rate_power", -0.5},
        {"l1_regularization_strength", 0},
        {"l2_regularization_strength", 0},
        {"beta", 0},
        {"initial_accumulator_value", 0.1},
        {"multiply_linear_by_learning_rate", false},
        {"allow_zero_accumulator", false}},
       kSame},
      {"tf.tpu.SGD", "sgd", {}, kSame},
      {"tfa.Yogi",
       "proximal_yogi",
       {{"beta1", 0.9},
        {"beta2", 0.999},
        {"epsilon", 1e-3},
        {"l1", 0},
        {"l2", 0},
        {"initial_accumulator_value", 1e-6}},
       kCallersCorrection},
      {"torch.Adadelta", "adadelta", {{"rho", 0.9}, {"epsilon", 1e-6}}, kLazyAverages},
      {"torch.Adagrad", "adagrad", {{"initial_accumulator_value", 1e-20}}, kSmallEpsilon},
      {"torch.Adam", "adamw", adam_with(1e-8, 0), kLazy},
      {"torch.AdamW", "adamw", adam_with(1e-8, 0.01), kLazy},
      {"torch.SGD", "sgd", {}, kSame},
      {"torch.SGD.momentum", "momentum", {{"momentum", 0.9}, {"use_nesterov", false}}, kLazy},
      {"torch.SparseAdam", "adamw", adam_with(1e-8, 0),
       "the same but for epsilon, which is times sqrt(1-beta2^t) here: seen only where gradients "
       "are as small as epsilon"},
  };
  std::ranges::sort(all, {}, &OptimizerVariant::name);
  return all;
}

}  // namespace

std::span<const OptimizerVariant> all_variants() {
  static const std::vector<OptimizerVariant> all = make_variants();
  return all;
}

const OptimizerVariant* find_variant(std::string_view name) {
  const auto found = std::ranges::find_if(all_variants(), [name](const OptimizerVariant& variant) {
    return equal_in_any_case(variant.name, name);
  });
  return found == all_variants().end() ? nullptr : &*found;
}

std::string optimizer_note(std::string_view name) {
  const Rule* const rule = known_rule(name);
  if (rule == nullptr || find_variant(name) != nullptr) return "";
  std::string others;
  for (const OptimizerVariant& variant : all_variants()) {
    const std::string_view there =
        std::string_view(variant.name).substr(variant.name.rfind('.') + 1);
    if (variant.rule == rule->name() || !equal_in_any_case(there, rule->name())) continue;
    others += (others.empty() ? "" : ", ") + variant.name;
  }
  if (others.empty()) return "";
  return "optimizer '" + std::string(name) + "' is the rule " + std::string(rule->name()) +
         ", whose formula is another than that of " + others + ": these are known by those names";
}

std::vector<OptimizerVariant> optimizer_variants() {
  return {all_variants().begin(), all_variants().end()};
}

}  // namespace embertable
