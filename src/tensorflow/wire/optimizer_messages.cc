#include "embertable/tensorflow/optimizer_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "embertable/optimizer.h"
#include "tensorflow/wire/algorithms.h"

namespace embertable::wire {
namespace {

/// Makes `parameters` the alternative at `index`, with its defaults.
template <std::size_t... kIndex>
void become(Parameters& parameters, std::size_t index, std::index_sequence<kIndex...>) {
  ((index == kIndex ? static_cast<void>(parameters.emplace<kIndex>()) : void()), ...);
}

/// Copies parameters of an optimizer into its algorithm's message.
struct Setter {
  const Optimizer& optimizer;

  void operator()(std::string_view name, float& field) const {
    field = static_cast<float>(optimizer.parameter(name));
  }
  void operator()(std::string_view name, bool& field) const {
    field = optimizer.parameter(name) != 0;
  }
  void operator()(std::string_view name, Inverted<bool> field) const {
    field.flag = optimizer.parameter(name) == 0;
  }
  template <class Message>
  void operator()(std::string_view, std::optional<Message>&) const {}  // not a parameter of a rule
};

/// Collects the parameters of a message.
struct Getter {
  Optimizer::Settings& settings;

  void operator()(std::string_view name, const float& field) const {
    settings.emplace_back(name, static_cast<double>(field));
  }
  void operator()(std::string_view name, const bool& field) const {
    settings.emplace_back(name, field);
  }
  void operator()(std::string_view name, Inverted<const bool> field) const {
    settings.emplace_back(name, !field.flag);
  }
  template <class Message>
  void operator()(std::string_view, const std::optional<Message>&) const {}
};

bool is_program(const Optimizer& optimizer) {
  const auto& rule = optimizer.custom_rule();
  return rule && std::holds_alternative<CustomRule::Elements>(rule->function);
}

Parameters parameters_of(const Optimizer& optimizer) {
  if (is_program(optimizer)) return UserDefinedProgramParameters{};
  const auto known = std::ranges::find_if(kAlgorithms, [&](const Algorithm& algorithm) {
    return !algorithm.rule.empty() && algorithm.rule == optimizer.rule();
  });
  if (known == std::end(kAlgorithms) || optimizer.custom_rule()) {
    throw NotImplemented(fmt::format("{}: TPUEmbeddingConfiguration has no message for this rule",
                                     optimizer.rule()));
  }
  Parameters parameters;
  become(parameters, static_cast<std::size_t>(known - std::begin(kAlgorithms)),
         std::make_index_sequence<std::variant_size_v<Parameters>>());
  const auto set = [&](auto& message) { each_parameter(message, Setter{optimizer}); };
  std::visit(
      [&](auto& message) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(message)>, std::monostate>)
          set(message);
      },
      parameters);
  return parameters;
}

std::optional<ClippingLimits> limits(const std::optional<double>& low,
                                     const std::optional<double>& high) {
  if (!low && !high) return {};
  ClippingLimits both;
  if (low) both.lower = static_cast<float>(*low);
  if (high) both.upper = static_cast<float>(*high);
  return both;
}

/// Returns the input with this tag. Throws ValueError naming rule and field if there is no tag.
OptimizerDynamicInput input(std::int32_t tag, std::string_view rule, std::string_view field) {
  if (tag < 0)
    throw ValueError(fmt::format("{}: a dynamic {} must have a tag, got none", rule, field));
  return {.tag = tag};
}

LearningRate rate_message(const Optimizer& optimizer, std::int32_t tag) {
  const embertable::LearningRate& rate = optimizer.learning_rate();
  if (rate.is_dynamic()) return {.learning_rate = input(tag, optimizer.rule(), "learning_rate")};
  return {.learning_rate = static_cast<float>(rate.constant())};
}

std::optional<double> number(const std::optional<FloatValue>& limit) {
  return limit ? std::optional<double>(limit->value) : std::nullopt;
}

OptimizerOptions options_of(const OptimizationParameters& message) {
  OptimizerOptions options;
  if (const auto& rows = message.clipping_limits) {
    options.clip_weight_min = number(rows->lower);
    options.clip_weight_max = number(rows->upper);
  }
  if (const auto& gradients = message.gradient_clipping_limits) {
    options.clip_gradient_min = number(gradients->lower);
    options.clip_gradient_max = number(gradients->upper);
  }
  options.weight_decay_factor = message.weight_decay_factor;
  options.multiply_weight_decay_factor_by_learning_rate =
      message.multiply_weight_decay_factor_by_learning_rate;
  options.use_gradient_accumulation = message.gradient_accumulation_status != Status::kDisabled;
  options.low_dimensional_packing_status =
      message.low_dimensional_packing_status == Status::kEnabled;
  return options;
}

/// Throws ValueError naming rule, field and tag if there is no such input.
const embertable::LearningRate& input_at(std::span<const embertable::LearningRate> inputs,
                                         std::int32_t tag, std::string_view rule,
                                         std::string_view field) {
  if (tag < 0 || static_cast<std::size_t>(tag) >= inputs.size()) {
    throw ValueError(fmt::format("{}: {} must have the tag of one of {} dynamic inputs, got {}",
                                 rule, field, inputs.size(), tag));
  }
  return inputs[tag];
}

embertable::LearningRate rate_of(const OptimizationParameters& message, std::string_view rule,
                                 std::span<const embertable::LearningRate> inputs) {
  if (message.learning_rate) {
    const auto& rate = message.learning_rate->learning_rate;
    if (const auto* constant = std::get_if<float>(&rate)) return *constant;
    if (const auto* dynamic = std::get_if<OptimizerDynamicInput>(&rate))
      return input_at(inputs, dynamic->tag, rule, "learning_rate");
  }
  throw ValueError(fmt::format("{}: learning_rate must be constant or dynamic, got none", rule));
}

}  // namespace

OptimizationParameters to_message(const Optimizer& optimizer, const OptimizerTags& tags) {
  const FloatEnvironment ours;
  const OptimizerOptions& options = optimizer.options();
  OptimizationParameters message;
  message.parameters = parameters_of(optimizer);
  message.clipping_limits = limits(options.clip_weight_min, options.clip_weight_max);
  message.gradient_clipping_limits = limits(options.clip_gradient_min, options.clip_gradient_max);
  message.learning_rate = rate_message(optimizer, tags.learning_rate);
  message.weight_decay_factor = static_cast<float>(options.weight_decay_factor);
  message.multiply_weight_decay_factor_by_learning_rate =
      options.weight_decay_factor != 0 && options.multiply_weight_decay_factor_by_learning_rate;
  message.gradient_accumulation_status =
      options.use_gradient_accumulation ? Status::kEnabled : Status::kDisabled;
  if (options.low_dimensional_packing_status)
    message.low_dimensional_packing_status = Status::kEnabled;
  if (auto* rule = std::get_if<FrequencyAwareAdagradParameters>(&message.parameters))
    rule->step_counter = input(tags.step_counter, optimizer.rule(), "step_counter");
  return message;
}

Optimizer to_optimizer(const OptimizationParameters& message,
                       std::span<const embertable::LearningRate> dynamic_inputs) {
  const std::string_view name = algorithm_name(message);
  const std::string_view rule = kAlgorithms[message.parameters.index()].rule;
  if (rule.empty()) {
    throw NotImplemented(
        fmt::format("{}: its program is an HLO module, which is not run here", name));
  }
  Optimizer::Settings settings;
  std::visit(
      [&](const auto& parameters) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(parameters)>, std::monostate>)
          each_parameter(parameters, Getter{settings});
      },
      message.parameters);
  OptimizerOptions options = options_of(message);
  if (const auto* own = std::get_if<FrequencyAwareAdagradParameters>(&message.parameters)) {
    const std::int32_t tag = own->step_counter ? own->step_counter->tag : 0;
    options.step_counter = input_at(dynamic_inputs, tag, rule, "step_counter");
  }
  return Optimizer(rule, rate_of(message, rule, dynamic_inputs), settings, std::move(options));
}

SimulatedQuantization to_message(const QuantizationConfig& quantization) {
  return {.enabled = true,
          .clipping_limits = ClippingLimits{quantization.lower, quantization.upper, {}},
          .num_buckets = quantization.num_buckets};
}

std::optional<QuantizationConfig> to_quantization(const OptimizationParameters& message) {
  const auto& quantization = message.simulated_quantization;
  if (!quantization || !quantization->enabled) return {};
  const auto& limits = quantization->clipping_limits;
  if (!limits || !limits->lower || !limits->upper) {
    throw ValueError(
        "simulated_quantization: clipping_limits must have lower and upper where it is enabled");
  }
  const QuantizationConfig config = {.num_buckets = quantization->num_buckets,
                                     .lower = limits->lower->value,
                                     .upper = limits->upper->value};
  validate(config);
  return config;
}

}  // namespace embertable::wire
