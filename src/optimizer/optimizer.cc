#include "embertable/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/did_you_mean.h"
#include "embertable/errors.h"
#include "optimizer/custom_rule.h"
#include "optimizer/range_text.h"
#include "optimizer/rule.h"
#include "optimizer/variants.h"

namespace embertable {

std::string range_text(const RuleParameter& parameter) {
  if (parameter.is_choice()) return fmt::format("{}", fmt::join(parameter.choices, " or "));
  const bool low = std::isfinite(parameter.low);
  const bool high = std::isfinite(parameter.high);
  if (low && high) {
    return fmt::format("in {}{}, {}{}", parameter.low_open ? '(' : '[', parameter.low,
                       parameter.high, parameter.high_open ? ')' : ']');
  }
  if (low) return fmt::format("{} {}", parameter.low_open ? ">" : ">=", parameter.low);
  if (high) return fmt::format("{} {}", parameter.high_open ? "<" : "<=", parameter.high);
  return "finite";
}

namespace {

/// Checks the range before and after rounding, because values count as binary32.
void check(const Rule& rule, const RuleParameter& parameter, double value) {
  if (parameter.allows(value)) return;
  const float rounded = static_cast<float>(value);
  std::string range = range_text(parameter);
  if (!std::isfinite(rounded) && range != "finite") range = "finite and " + range;
  const std::string as_rounded =
      parameter.contains(value) ? fmt::format(" (in binary32 {})", rounded) : "";
  throw ValueError(fmt::format("{}: {} must be {}, got {}{}", rule.name(), parameter.name, range,
                               value, as_rounded));
}

std::string no_parameter(const Rule& rule, std::string_view name) {
  std::vector<std::string_view> known;
  for (const RuleParameter& parameter : rule.parameters()) known.push_back(parameter.name);
  constexpr std::pair<std::string_view, std::string_view> kNamesElsewhere[] = {
      {"lr", "learning_rate"}, {"eps", "epsilon"}, {"nesterov", "use_nesterov"}};
  for (const auto& [elsewhere, here] : kNamesElsewhere) {
    const bool is_here = here == "learning_rate" || std::ranges::find(known, here) != known.end();
    if (name == elsewhere && is_here)
      return fmt::format("{}: there is no parameter '{}'; it is called {} here", rule.name(), name,
                         here);
  }
  const std::string hint = known.empty() ? "; it has none but the rate" : name_hint(name, known);
  return fmt::format("{}: there is no parameter '{}'{}", rule.name(), name, hint);
}

void check_rate(const Rule& rule, const LearningRate& rate) {
  if (!rate.is_dynamic()) check(rule, {.name = "learning_rate", .low = 0}, rate.constant());
}

/// Returns the number that stands for a setting.
double value_of(const Rule& rule, const RuleParameter& parameter, const Setting& setting) {
  std::optional<double> value;
  if (const auto* number = std::get_if<double>(&setting.value())) {
    value = *number;
  } else {
    const auto* flag = std::get_if<bool>(&setting.value());
    const std::string_view name =
        flag == nullptr ? std::get<std::string>(setting.value()) : kFlag[static_cast<int>(*flag)];
    const auto found = std::ranges::find(parameter.choices, name);
    if (found != parameter.choices.end())
      value = static_cast<double>(found - parameter.choices.begin());
  }
  if (!value || (parameter.is_choice() && !parameter.contains(*value))) {
    throw ValueError(fmt::format("{}: {} must be {}, got {}", rule.name(), parameter.name,
                                 range_text(parameter), setting.to_string()));
  }
  check(rule, parameter, *value);
  return *value;
}

void check_limits(std::string_view rule, std::string_view what, const std::optional<double>& low,
                  const std::optional<double>& high) {
  if ((low && std::isnan(*low)) || (high && std::isnan(*high)))
    throw ValueError(
        fmt::format("{}: {}_min and {}_max must be numbers, got nan", rule, what, what));
  if (low && high && *low > *high) {
    throw ValueError(
        fmt::format("{}: {}_min must be <= {}_max, got {} and {}", rule, what, what, *low, *high));
  }
}

void check_options(std::string_view rule, const OptimizerOptions& options) {
  if (options.slot_variable_creation_fn && !*options.slot_variable_creation_fn) {
    throw ValueError(
        fmt::format("{}: slot_variable_creation_fn must have a function, got none", rule));
  }
  if (!options.use_gradient_accumulation &&
      (options.clip_gradient_min || options.clip_gradient_max)) {
    const bool low = options.clip_gradient_min.has_value();
    throw ValueError(fmt::format(
        "{}: use_gradient_accumulation must be true where clipvalue limits gradients, got {} = {}",
        rule, low ? "clip_gradient_min" : "clip_gradient_max",
        low ? *options.clip_gradient_min : *options.clip_gradient_max));
  }
  check_limits(rule, "clip_gradient", options.clip_gradient_min, options.clip_gradient_max);
  check_limits(rule, "clip_weight", options.clip_weight_min, options.clip_weight_max);
  if (!(options.weight_decay_factor >= 0) ||
      !std::isfinite(static_cast<float>(options.weight_decay_factor))) {
    throw ValueError(fmt::format("{}: weight_decay_factor must be finite and >= 0, got {}", rule,
                                 options.weight_decay_factor));
  }
  if (options.step_counter && !std::isfinite(static_cast<float>(options.step_counter->constant())))
    throw ValueError(fmt::format("{}: step_counter must be finite, got {}", rule,
                                 options.step_counter->constant()));
}

std::string parameter_text(const RuleParameter& parameter, double value) {
  if (parameter.is_choice()) return std::string(parameter.choices[static_cast<std::size_t>(value)]);
  return fmt::format("{}", value);
}

void append_limit(std::string& text, std::string_view name, const std::optional<double>& limit) {
  if (limit) text += fmt::format(", {}={}", name, *limit);
}

/// Returns the options that differ from their defaults.
std::string options_text(const OptimizerOptions& options) {
  std::string text;
  append_limit(text, "clip_gradient_min", options.clip_gradient_min);
  append_limit(text, "clip_gradient_max", options.clip_gradient_max);
  if (options.weight_decay_factor != 0) {
    text += fmt::format(", weight_decay_factor={}", options.weight_decay_factor);
    if (options.multiply_weight_decay_factor_by_learning_rate)
      text += ", multiply_weight_decay_factor_by_learning_rate=true";
  }
  append_limit(text, "clip_weight_min", options.clip_weight_min);
  append_limit(text, "clip_weight_max", options.clip_weight_max);
  if (!options.use_gradient_accumulation) text += ", use_gradient_accumulation=false";
  if (options.low_dimensional_packing_status) text += ", low_dimensional_packing_status=true";
  if (options.slot_variable_creation_fn) text += ", slot_variable_creation_fn=function";
  if (options.step_counter) {
    text += options.step_counter->is_dynamic()
                ? std::string(", step_counter=dynamic")
                : fmt::format(", step_counter={}", options.step_counter->constant());
  }
  return text;
}

/// Returns the index of a name, or the number of parameters for an unknown one.
std::size_t index_of(const Optimizer::Parameters& parameters, std::string_view name) {
  std::size_t i = 0;
  while (i < parameters.size() && parameters[i].first != name) ++i;
  return i;
}

/// Adds the settings of the variant, if it is one, that are not given.
Optimizer::Settings with_variant(std::string_view name, Optimizer::Settings settings) {
  const OptimizerVariant* variant = find_variant(name);
  if (variant == nullptr) return settings;
  const std::size_t given = settings.size();
  for (const auto& setting : variant->settings) {
    const auto is_it = [&](const auto& other) { return other.first == setting.first; };
    if (std::none_of(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(given),
                     is_it))
      settings.push_back(setting);
  }
  return settings;
}

}  // namespace

LearningRate LearningRate::dynamic(Function function) {
  if (!function) throw ValueError("learning_rate: a dynamic rate must have a function, got none");
  return scheduled([function = std::move(function)](std::int64_t) { return function(); });
}

LearningRate LearningRate::scheduled(Schedule schedule) {
  if (!schedule) throw ValueError("learning_rate: a schedule must have a function, got none");
  LearningRate rate(0);
  rate.function_ = std::make_shared<const Schedule>(std::move(schedule));
  return rate;
}

std::string Setting::to_string() const {
  if (const auto* number = std::get_if<double>(&value_)) return fmt::format("{}", *number);
  if (const auto* flag = std::get_if<bool>(&value_)) return *flag ? "true" : "false";
  return fmt::format("'{}'", std::get<std::string>(value_));
}

Optimizer::Optimizer(std::string_view rule_or_variant, LearningRate learning_rate,
                     const Settings& wanted, OptimizerOptions options)
    : rule_(find_rule(rule_or_variant).name()),
      learning_rate_(std::move(learning_rate)),
      options_(std::move(options)) {
  const Rule& rule = find_rule(rule_);
  const Settings settings = with_variant(rule_or_variant, wanted);
  check_options(rule_, options_);
  check_rate(rule, learning_rate_);
  for (const RuleParameter& known : rule.parameters()) {
    parameters_.emplace_back(known.name, known.default_value);
  }
  std::vector<bool> given(parameters_.size());
  for (const auto& [name, setting] : settings) {
    const std::size_t i = index_of(parameters_, name);
    if (i == parameters_.size()) throw ValueError(no_parameter(rule, name));
    const RuleParameter& parameter = rule.parameters()[i];
    if (given[i]) {
      throw ValueError(fmt::format("{}: {} must be given once, got {} after {}", rule_, name,
                                   setting.to_string(),
                                   parameter_text(parameter, parameters_[i].second)));
    }
    parameters_[i].second = value_of(rule, parameter, setting);
    given[i] = true;
  }
  rule.check(*this);
}

Optimizer::Optimizer(std::shared_ptr<const CustomRule> rule, LearningRate learning_rate,
                     OptimizerOptions options)
    : rule_(rule->name),
      learning_rate_(std::move(learning_rate)),
      parameters_(rule->hyperparameters),
      options_(std::move(options)),
      custom_rule_(std::move(rule)) {
  check_options(rule_, options_);
  check_rate(embertable::custom_rule(), learning_rate_);
  check(*custom_rule_);
  if (custom_rule_->steps_every_row && !options_.use_gradient_accumulation) {
    throw ValueError(fmt::format(
        "{}: use_gradient_accumulation must be true where every row steps, got false", rule_));
  }
}

Optimizer Optimizer::custom(CustomRule rule, LearningRate learning_rate, OptimizerOptions options) {
  return Optimizer(std::make_shared<const CustomRule>(std::move(rule)), std::move(learning_rate),
                   std::move(options));
}

Optimizer Optimizer::with_learning_rate(LearningRate learning_rate) const {
  check_rate(rule_of(*this), learning_rate);
  Optimizer other = *this;
  other.learning_rate_ = std::move(learning_rate);
  return other;
}

double Optimizer::parameter(std::string_view name) const {
  const std::size_t i = index_of(parameters_, name);
  if (i == parameters_.size()) throw KeyError(no_parameter(rule_of(*this), name));
  return parameters_[i].second;
}

std::string Optimizer::to_string() const {
  std::string text = learning_rate_.is_dynamic()
                         ? fmt::format("{}(learning_rate=dynamic", rule_)
                         : fmt::format("{}(learning_rate={}", rule_, learning_rate_.constant());
  const std::span<const RuleParameter> known = rule_of(*this).parameters();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, value] = parameters_[i];
    text += fmt::format(", {}={}", name,
                        known.empty() ? fmt::format("{}", value) : parameter_text(known[i], value));
  }
  return text + options_text(options_) + ")";
}

std::vector<std::string> optimizer_rules() {
  std::vector<std::string> names;
  for (const Rule& rule : all_rules()) names.emplace_back(rule.name());
  return names;
}

}  // namespace embertable
