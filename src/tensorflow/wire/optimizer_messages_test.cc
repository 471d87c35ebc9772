// Optimizers as messages and back; what algorithms keep.

#include "embertable/tensorflow/optimizer_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "embertable/errors.h"
#include "embertable/optimizer.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "tensorflow/wire/algorithms.h"
#include "testing/flush_to_zero.h"
#include "testing/golden_messages.h"
#include "testing/refusal.h"

namespace embertable::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool is_in_the_proto(const std::string& rule) {
  return std::ranges::find(kAlgorithms, rule, &Algorithm::rule) != std::end(kAlgorithms);
}

std::string hex(const Optimizer& optimizer) { return to_hex(serialize(to_message(optimizer))); }

Optimizer with_options(const OptimizerOptions& options, const char* rule = "adagrad") {
  return Optimizer(rule, 0.1, {}, options);
}

TEST(ConfigCases, Case38_GradientLimitsBySide) {
  const auto limits = [](std::optional<double> low, std::optional<double> high) {
    return to_message(with_options({.clip_gradient_min = low, .clip_gradient_max = high}))
        .gradient_clipping_limits;
  };
  EXPECT_EQ(limits(-1, 1), (ClippingLimits{-1.0f, 1.0f, {}}));
  EXPECT_EQ(limits({}, 1), (ClippingLimits{{}, 1.0f, {}}));
  EXPECT_EQ(limits({}, {}), std::nullopt);
}

TEST(ToMessage, KeepsDenormalParametersWhereTheThreadFlushesThem) {
  const auto message = [] { return to_message(with_options({.weight_decay_factor = 1e-39})); };
  EXPECT_EQ(serialize(flushing_to_zero(message)), serialize(message()));
}

TEST(ConfigCases, Case49_WeightDecayIsThereWhereItDoesSomething) {
  const auto message = [](double factor, bool multiply) {
    return to_message(with_options({.weight_decay_factor = factor,
                                    .multiply_weight_decay_factor_by_learning_rate = multiply}));
  };
  EXPECT_FALSE(message(0, true).multiply_weight_decay_factor_by_learning_rate);
  EXPECT_EQ(message(0, true).weight_decay_factor, 0);
  EXPECT_TRUE(message(0.01, true).multiply_weight_decay_factor_by_learning_rate);
  EXPECT_EQ(message(0.01, true).weight_decay_factor, 0.01f);
  EXPECT_FALSE(message(0.01, false).multiply_weight_decay_factor_by_learning_rate);
}

TEST(ConfigCases, Case50_LimitsAndRatesOfZeroArePresent) {
  EXPECT_EQ(to_message(with_options({.clip_weight_min = -1})).clipping_limits,
            (ClippingLimits{-1.0f, {}, {}}));
  EXPECT_EQ(to_message(with_options({.clip_weight_min = 0})).clipping_limits,
            (ClippingLimits{0.0f, {}, {}}));
  EXPECT_EQ(hex(Optimizer("sgd", 0)), "22006a050d00000000880101");
}

TEST(ConfigCases, Case51_PackingIsEnabledOrUnspecified) {
  EXPECT_EQ(to_message(with_options({.low_dimensional_packing_status = true}))
                .low_dimensional_packing_status,
            Status::kEnabled);
  EXPECT_EQ(to_message(with_options({})).low_dimensional_packing_status, Status::kUnspecified);
}

TEST(ConfigCases, Case52_AdamByDefault) {
  const OptimizationParameters message = to_message(Optimizer("adam", 0.001));
  const auto& adam = std::get<AdamParameters>(message.parameters);
  EXPECT_EQ(adam.beta1, 0.9f);
  EXPECT_EQ(adam.beta2, 0.999f);
  EXPECT_EQ(adam.epsilon, 1e-7f);
  EXPECT_FALSE(adam.use_non_lazy_adam);
  EXPECT_TRUE(adam.use_sum_inside_sqrt);
  EXPECT_EQ(message.gradient_accumulation_status, Status::kEnabled);
}

/// Parameters of each rule that are not its defaults, in the proto's names and ours.
TEST(OptimizerMessages, EveryParameterHasItsField) {
  EXPECT_EQ(hex(Optimizer("adagrad_momentum", 0.5,
                          {{"momentum", 0.25},
                           {"use_nesterov", true},
                           {"exponent", 4},
                           {"beta2", 0.5},
                           {"epsilon", 0.125}})),
            "6a050d0000003f880101d201160d0000803e10011d00008040250000003f2d0000003e");
  EXPECT_EQ(
      hex(Optimizer(
          "bounded_adagrad", 0.5,
          {{"update_accumulator_first", true}, {"max_var_update", 2.0}, {"max_accumulator", 4.0}})),
      "6a050d0000003f8801019a010c080115000000401d00008040");
  EXPECT_EQ(hex(Optimizer("ftrl", 0.5,
                          {{"learning_rate_power", -0.25},
                           {"l1_regularization_strength", 1.0},
                           {"l2_regularization_strength", 2.0},
                           {"beta", 4.0},
                           {"multiply_linear_by_learning_rate", true},
                           {"allow_zero_accumulator", true}})),
            "2a180d0000803f15000000401d000080be30013d0000804040016a050d0000003f880101");
  EXPECT_EQ(
      hex(Optimizer("lion", 0.5, {{"beta1", 0.5}, {"beta2", 0.25}, {"use_non_lazy_lion", true}})),
      "6a050d0000003f880101ea010c0d0000003f150000803e1801");
  EXPECT_EQ(hex(Optimizer("frequency_estimator", 1,
                          {{"tau", 0.5},
                           {"max_delta", 2.0},
                           {"outlier_threshold", 4.0},
                           {"weight_exponent", 1.0}})),
            "6a050d0000803f880101ba01140d0000003f15000000401d00008040250000803f");
}

TEST(OptimizerMessages, EveryRuleComesBack) {
  const std::vector<embertable::LearningRate> inputs = {
      embertable::LearningRate::dynamic([] { return 0.5; }), embertable::LearningRate(3.0)};
  const OptimizerOptions options = {.clip_gradient_min = -2,
                                    .clip_gradient_max = 2,
                                    .clip_weight_max = 8,
                                    .low_dimensional_packing_status = true,
                                    .step_counter = {}};
  std::size_t rules = 0;
  for (const std::string& name : optimizer_rules()) {
    if (!is_in_the_proto(name)) continue;
    ++rules;
    for (const embertable::LearningRate& learning_rate :
         {embertable::LearningRate(0.25), inputs.front()}) {
      const Optimizer optimizer(name, learning_rate, {}, options);
      const OptimizationParameters message =
          to_message(optimizer, {.learning_rate = 0, .step_counter = 1});
      const Optimizer back =
          to_optimizer(parse_optimization_parameters(serialize(message)), inputs);
      EXPECT_EQ(back.rule(), name);
      EXPECT_EQ(back.learning_rate(), learning_rate);
      EXPECT_EQ(back.options().clip_weight_max, 8.0);
      EXPECT_EQ(back.options().step_counter.has_value(), name == "frequency_aware_adagrad");
      EXPECT_EQ(serialize(to_message(back, {.learning_rate = 0, .step_counter = 1})),
                serialize(message));
      for (std::size_t i = 0; i < back.parameters().size(); ++i)
        EXPECT_FLOAT_EQ(back.parameters()[i].second, optimizer.parameters()[i].second) << name;
    }
  }
  EXPECT_EQ(rules, std::size(kAlgorithms) - 2);  // without none at all and the user's program
}

TEST(OptimizerMessages, RulesBeyondTheProtoAreNotImplemented) {
  for (const std::string& name : optimizer_rules()) {
    if (is_in_the_proto(name)) continue;
    EXPECT_THAT(refusal<NotImplemented>([&] { to_message(Optimizer(name, 0.1)); }),
                HasSubstr(name));
  }
  const CustomRule rule = {.name = "mine", .function = CustomRule::Rows([](const CustomRow&) {})};
  EXPECT_THAT(refusal<NotImplemented>([&] { to_message(Optimizer::custom(rule)); }),
              HasSubstr("mine"));
}

TEST(OptimizerMessages, AProgramOfOursIsAnEmptyOneThere) {
  const Optimizer program = user_defined_program(
      2, 1, [](auto in, auto out) { out[0] = in[1] - in[0]; }, 0.5);
  EXPECT_EQ(hex(program), "6a050d0000003f880101c20100");
  EXPECT_THAT(refusal<NotImplemented>([&] { to_optimizer(to_message(program)); }),
              HasSubstr("UserDefinedProgram"));
}

TEST(OptimizerMessages, InputsMustBeThere) {
  const Optimizer dynamic("sgd", embertable::LearningRate::dynamic([] { return 1.0; }));
  EXPECT_THAT(refusal<ValueError>([&] { to_message(dynamic); }),
              AllOf(HasSubstr("sgd"), HasSubstr("learning_rate")));
  EXPECT_THAT(refusal<ValueError>([] { to_message(Optimizer("frequency_aware_adagrad", 0.1)); }),
              HasSubstr("step_counter"));
  const OptimizationParameters message = to_message(dynamic, {.learning_rate = 2});
  EXPECT_THAT(refusal<ValueError>([&] { to_optimizer(message); }),
              AllOf(HasSubstr("one of 0 dynamic inputs"), HasSubstr("got 2")));
  OptimizationParameters aware;
  aware.parameters = FrequencyAwareAdagradParameters{
      .max_lr_multiplier = 1, .accumulator_decay = 1, .initial_accumulator_value = 1};
  aware.learning_rate = LearningRate{.learning_rate = 0.5f};
  EXPECT_THAT(refusal<ValueError>([&] { to_optimizer(aware); }), HasSubstr("got 0"));
  const std::vector<embertable::LearningRate> inputs = {7.0};
  EXPECT_EQ(to_optimizer(aware, inputs).options().step_counter, embertable::LearningRate(7.0));
}

TEST(OptimizerMessages, WhatNoOptimizerCanBeIsRefused) {
  OptimizationParameters message;
  message.parameters = AdamParameters{.beta1 = 1.5f, .epsilon = 1};
  EXPECT_THAT(refusal<ValueError>([&] { to_optimizer(message); }), HasSubstr("learning_rate"));
  message.learning_rate = LearningRate{.learning_rate = 0.5f};
  EXPECT_THAT(refusal<ValueError>([&] { to_optimizer(message); }),
              AllOf(HasSubstr("beta_1"), HasSubstr("1.5")));
  message.parameters = MdlAdagradLightParameters{.l2 = 1};
  EXPECT_THAT(refusal<NotImplemented>([&] { to_optimizer(message); }), HasSubstr("l2"));
}

TEST(OptimizerMessages, UnspecifiedAccumulationIsOn) {
  OptimizationParameters message = to_message(Optimizer("sgd", 0.5));
  message.gradient_accumulation_status = Status::kUnspecified;
  EXPECT_TRUE(to_optimizer(message).options().use_gradient_accumulation);
  message.gradient_accumulation_status = Status::kDisabled;
  EXPECT_FALSE(to_optimizer(message).options().use_gradient_accumulation);
}

TEST(OptimizerMessages, QuantizationComesBack) {
  const QuantizationConfig config = {.num_buckets = 5, .lower = -1, .upper = 0.5};
  OptimizationParameters message;
  EXPECT_EQ(to_quantization(message), std::nullopt);
  message.simulated_quantization = to_message(config);
  EXPECT_EQ(to_hex(serialize(message)), "da01140801120e0a050d000080bf12050d0000003f1805");
  EXPECT_EQ(to_quantization(message), config);
  message.simulated_quantization->enabled = false;
  EXPECT_EQ(to_quantization(message), std::nullopt);
  message.simulated_quantization = SimulatedQuantization{.enabled = true, .num_buckets = 5};
  EXPECT_THAT(refusal<ValueError>([&] { to_quantization(message); }), HasSubstr("clipping_limits"));
}

/// The message whose algorithm has this field number, all else as by default.
OptimizationParameters algorithm(std::uint32_t field, Status status) {
  std::string bytes;
  for (std::uint32_t tag = field << 3 | 2; bytes.empty() || tag != 0; tag >>= 7)
    bytes += static_cast<char>((tag & 0x7f) | (tag > 0x7f ? 0x80 : 0));
  OptimizationParameters message = parse_optimization_parameters(bytes + '\0');
  message.gradient_accumulation_status = status;
  return message;
}

/// State variables in the form of the golden file: [name, first value or null].
nlohmann::json states(const OptimizationParameters& message) {
  nlohmann::json all = nlohmann::json::array();
  for (const StateVariableSpecification& variable : state_variables(message)) {
    const auto* fill = std::get_if<StateVariableSpecification::FillWithConstant>(&variable.usage);
    all.push_back({variable.name, nullptr});
    if (fill) all.back()[1] = static_cast<float>(fill->initial_value);
  }
  return all;
}

TEST(ConfigCases, Case53_NamesAndStateVariablesOfEveryAlgorithm) {
  int compared = 0;
  for (const auto& wanted : golden()["algorithms"]) {
    if (!wanted.contains("auxiliary")) continue;  // a program: below
    const std::uint32_t field = wanted["field"];
    EXPECT_EQ(algorithm_name(algorithm(field, Status::kEnabled)), wanted["name"]);
    for (int status = 0; status < 3; ++status) {
      const OptimizationParameters message = algorithm(field, static_cast<Status>(status));
      EXPECT_EQ(uses_gradient_accumulation(message), wanted["use_" + std::to_string(status)]);
      const nlohmann::json& names = wanted["state_" + std::to_string(status)];
      const nlohmann::json ours = states(message);
      ASSERT_EQ(ours.size(), names.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_EQ(ours[i][0], names[i][0]);
        ASSERT_EQ(ours[i][1].is_null(), names[i][1].is_null());
        if (ours[i][1].is_null()) continue;
        EXPECT_EQ(ours[i][1].get<float>(), names[i][1].get<float>());  // 0x1p-149
      }
    }
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

/// A serialized HloModuleProto whose program has `inputs` inputs and `outputs` outputs.
std::string program(std::size_t inputs, std::size_t outputs) {
  std::string result, shape;
  for (std::size_t i = 0; i < outputs; ++i) result += from_hex("2200");
  for (std::size_t i = 0; i < inputs; ++i) shape += from_hex("0a00");
  shape += std::string("\x12") + static_cast<char>(result.size()) + result;
  return from_hex("0a0170") + "\x22" + static_cast<char>(shape.size()) + shape;
}

OptimizationParameters user_program(std::size_t inputs, std::size_t outputs, Status status) {
  return {.gradient_accumulation_status = status,
          .parameters = UserDefinedProgramParameters{.program = program(inputs, outputs)}};
}

TEST(ConfigCases, Case54_ProgramsByInputsAndOutputs) {
  for (const auto& wanted : golden()["user_programs"]) {
    const auto numbers = wanted["program"].get<std::vector<std::size_t>>();
    const OptimizationParameters message = user_program(
        numbers[0], numbers[1], static_cast<Status>(wanted["accumulation"].get<int>()));
    if (wanted["status"] != "OK") {
      EXPECT_THROW(state_variables(message), ValueError) << wanted;
      continue;
    }
    std::vector<std::string> names;
    for (const StateVariableSpecification& variable : state_variables(message))
      names.push_back(variable.name);
    EXPECT_EQ(names, wanted["state"].get<std::vector<std::string>>()) << wanted;
  }
}

TEST(ConfigCases, Case54_ProgramsThatDoNotFitAreNamed) {
  EXPECT_THAT(refusal<ValueError>([] { state_variables(user_program(5, 2, Status::kEnabled)); }),
              AllOf(HasSubstr("5 inputs"), HasSubstr("2 outputs")));
  EXPECT_THAT(refusal<ValueError>([] { state_variables(user_program(9, 8, Status::kEnabled)); }),
              AllOf(HasSubstr("UserDefinedProgram"), HasSubstr("got 7")));
  OptimizationParameters broken = user_program(3, 2, Status::kEnabled);
  std::get<UserDefinedProgramParameters>(broken.parameters).program = "\x22\x05";
  EXPECT_THAT(refusal<ValueError>([&] { state_variables(broken); }),
              HasSubstr("HloModuleProto, byte 2"));
}

TEST(ConfigCases, Case55_WithoutAnAlgorithm) {
  const OptimizationParameters none;
  for (const auto& ask : {+[](const OptimizationParameters& m) { algorithm_name(m); },
                          +[](const OptimizationParameters& m) { state_variables(m); },
                          +[](const OptimizationParameters& m) { uses_gradient_accumulation(m); },
                          +[](const OptimizationParameters& m) { to_optimizer(m); }}) {
    EXPECT_THAT(refusal<ValueError>([&] { ask(none); }), HasSubstr("algorithm"));
  }
}

TEST(Golden, NumbersOfDynamicInputs) {
  for (const auto& wanted : golden()["tags"]) {
    for (const bool dynamic : {false, true}) {
      OptimizationParameters message;
      if (wanted["tags_of"] == "FrequencyAwareAdagrad") {
        message.parameters =
            FrequencyAwareAdagradParameters{.step_counter = OptimizerDynamicInput{}};
      }
      const std::int32_t own = message.parameters.index() == 0 ? 0 : 1;
      if (dynamic)
        message.learning_rate = LearningRate{.learning_rate = OptimizerDynamicInput{own, {}}};
      TPUEmbeddingConfiguration one;
      one.table_descriptor.push_back({.optimization_parameters = message});
      EXPECT_EQ(num_dynamic_inputs(one), wanted[dynamic ? "dynamic" : "constant"]);
    }
  }
}

}  // namespace
}  // namespace embertable::wire
