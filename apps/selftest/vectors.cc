#include "apps/selftest/vectors.h"

#include <nlohmann/json.hpp>

namespace embertable::selftest {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kVectors[] = {
#include "apps/selftest/vectors.inl"
};

Setting setting_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  return value.get<double>();
}

std::optional<double> limit_of(const Json& options, const char* name) {
  if (!options.contains(name)) return std::nullopt;
  return options[name].get<double>();
}

OptimizerOptions options_of(const Json& json) {
  OptimizerOptions options;
  options.clip_gradient_min = limit_of(json, "clip_gradient_min");
  options.clip_gradient_max = limit_of(json, "clip_gradient_max");
  options.weight_decay_factor = json.value("weight_decay_factor", 0.0);
  options.multiply_weight_decay_factor_by_learning_rate =
      json.value("multiply_weight_decay_factor_by_learning_rate", false);
  options.clip_weight_min = limit_of(json, "clip_weight_min");
  options.clip_weight_max = limit_of(json, "clip_weight_max");
  options.use_gradient_accumulation = json.value("use_gradient_accumulation", true);
  return options;
}

GoldenVector::Step step_of(const Json& json) {
  return {.learning_rate = json["learning_rate"].get<double>(),
          .step_counter = json["step_counter"].get<double>(),
          .gradients = json["gradients"].get<std::vector<std::vector<float>>>(),
          .expected = json["expected"].get<std::vector<std::vector<double>>>(),
          .bits = json.value("bits", std::vector<std::string>())};
}

GoldenVector vector_of(const Json& json) {
  GoldenVector vector{.id = json["id"].get<std::string>(),
                      .source = json["source"].get<std::string>(),
                      .rule = json["rule"].get<std::string>(),
                      .options = options_of(json["options"]),
                      .slots = json["slots"].get<std::vector<std::string>>(),
                      .start = json["start"].get<std::vector<std::vector<float>>>(),
                      .rtol = json["rtol"].get<double>(),
                      .atol = json["atol"].get<double>()};
  for (const auto& [name, value] : json["settings"].items())
    vector.settings.emplace_back(name, setting_of(value));
  for (const Json& step : json["steps"]) vector.steps.push_back(step_of(step));
  return vector;
}

std::vector<GoldenVector> make_vectors() {
  std::vector<GoldenVector> vectors;
  for (const char* text : kVectors) vectors.push_back(vector_of(Json::parse(text)));
  return vectors;
}

}  // namespace

const std::vector<GoldenVector>& published_vectors() {
  static const std::vector<GoldenVector> vectors = make_vectors();
  return vectors;
}

}  // namespace embertable::selftest
