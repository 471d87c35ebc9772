#pragma once

#include <map>
#include <optional>
#include <string>

#include "embertable/embertable.h"
#include "testing/golden_messages.h"

namespace embertable::golden_configurations {

using Json = nlohmann::json;

/// Rates that are functions, by the names that the golden file has for them.
using Functions = std::map<std::string, LearningRate>;

inline LearningRate rate_of(const Json& value, Functions& functions) {
  if (value.is_number()) return value.get<double>();
  const std::string name = value["callable"];
  return functions.try_emplace(name, LearningRate::dynamic([] { return 0.5; })).first->second;
}

/// A number stands for limits on both sides, a list for one on each.
inline void limit_gradients(OptimizerOptions& options, const Json& value) {
  const bool pair = value.is_array();
  const Json low = pair ? value[0] : Json(-value.get<double>());
  const Json high = pair ? value[1] : value;
  if (!low.is_null()) options.clip_gradient_min = low.get<double>();
  if (!high.is_null()) options.clip_gradient_max = high.get<double>();
}

/// True if `name` is an option of every optimizer; takes it over.
inline bool take_option(OptimizerOptions& options, const std::string& name, const Json& value) {
  if (name == "use_gradient_accumulation") {
    options.use_gradient_accumulation = value;
  } else if (name == "low_dimensional_packing_status") {
    options.low_dimensional_packing_status = value;
  } else if (name == "multiply_weight_decay_factor_by_learning_rate") {
    options.multiply_weight_decay_factor_by_learning_rate = value;
  } else if (name == "weight_decay_factor") {
    options.weight_decay_factor = value;
  } else if (name == "clip_weight_min") {
    options.clip_weight_min = value.get<double>();
  } else if (name == "clip_weight_max") {
    options.clip_weight_max = value.get<double>();
  } else if (name == "clipvalue") {
    limit_gradients(options, value);
  } else {
    return false;
  }
  return true;
}

inline Optimizer optimizer_of(const Json& optimizer, Functions& functions) {
  static const std::map<std::string, std::string> kRules = {{"SGD", "sgd"},
                                                            {"Adagrad", "adagrad"},
                                                            {"AdagradMomentum", "adagrad_momentum"},
                                                            {"FTRL", "ftrl"},
                                                            {"Adam", "adam"}};
  const std::string& rule = kRules.at(optimizer["class"]);
  LearningRate rate = rule == "sgd" ? 0.01 : 0.001;
  OptimizerOptions options;
  Optimizer::Settings settings;
  for (const auto& [name, value] : optimizer["args"].items()) {
    if (name == "learning_rate") {
      rate = rate_of(value, functions);
    } else if (!value.is_null() && !take_option(options, name, value)) {
      settings.emplace_back(
          name, value.is_boolean() ? Setting(value.get<bool>()) : Setting(value.get<double>()));
    }
  }
  return Optimizer(rule, rate, settings, options);
}

/// null: unknown rank; a null dim: unknown.
inline Shape shape_of(const Json& value) {
  if (value.is_null()) return {};
  std::vector<std::int64_t> dims;
  for (const Json& dim : value)
    dims.push_back(dim.is_null() ? Shape::kUnknown : dim.get<std::int64_t>());
  return Shape(dims);
}

}  // namespace embertable::golden_configurations
