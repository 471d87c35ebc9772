#include "embertable/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "base/nearest.h"
#include "embertable/errors.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

/// "> 0", "in [0, 1)", "finite".
std::string range_text(const RuleParameter& parameter) {
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

/// Values count as binary32, so the range is checked before and after rounding.
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
  const std::string hint = known.empty()
                               ? "it has none but the rate"
                               : fmt::format("the nearest is '{}'", nearest_name(name, known));
  return fmt::format("{}: there is no parameter '{}'; {}", rule.name(), name, hint);
}

/// The number of parameters for a name that is not among them.
std::size_t index_of(const Optimizer::Parameters& parameters, std::string_view name) {
  std::size_t i = 0;
  while (i < parameters.size() && parameters[i].first != name) ++i;
  return i;
}

}  // namespace

LearningRate LearningRate::dynamic(Function function) {
  if (!function) throw ValueError("learning_rate: a dynamic rate must have a function, got none");
  LearningRate rate(0);
  rate.function_ = std::make_shared<const Function>(std::move(function));
  return rate;
}

Optimizer::Optimizer(std::string_view rule_name, LearningRate learning_rate,
                     const Parameters& parameters)
    : rule_(rule_name), learning_rate_(std::move(learning_rate)) {
  const Rule& rule = find_rule(rule_name);
  if (!learning_rate_.is_dynamic()) {
    check(rule, {.name = "learning_rate", .low = 0}, learning_rate_.constant());
  }
  for (const RuleParameter& known : rule.parameters()) {
    parameters_.emplace_back(known.name, known.default_value);
  }
  std::vector<bool> given(parameters_.size());
  for (const auto& [name, value] : parameters) {
    const std::size_t i = index_of(parameters_, name);
    if (i == parameters_.size()) throw ValueError(no_parameter(rule, name));
    if (given[i]) {
      throw ValueError(fmt::format("{}: {} must be given once, got {} after {}", rule_, name, value,
                                   parameters_[i].second));
    }
    check(rule, rule.parameters()[i], value);
    parameters_[i].second = value;
    given[i] = true;
  }
}

double Optimizer::parameter(std::string_view name) const {
  const std::size_t i = index_of(parameters_, name);
  if (i == parameters_.size()) throw KeyError(no_parameter(find_rule(rule_), name));
  return parameters_[i].second;
}

std::string Optimizer::to_string() const {
  std::string text = learning_rate_.is_dynamic()
                         ? fmt::format("{}(learning_rate=dynamic", rule_)
                         : fmt::format("{}(learning_rate={}", rule_, learning_rate_.constant());
  for (const auto& [name, value] : parameters_) text += fmt::format(", {}={}", name, value);
  return text + ")";
}

std::vector<std::string> optimizer_rules() {
  std::vector<std::string> names;
  for (const Rule* rule : all_rules()) names.emplace_back(rule->name());
  return names;
}

}  // namespace embertable
