#include "embertable/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "embertable/errors.h"
#include "embertable/optimizer_rules.h"

namespace embertable {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Pair;

/// The text of the optimizer, or what its constructor says when it refuses.
std::string text_or_refusal(std::string_view rule, LearningRate rate,
                            const Optimizer::Settings& parameters = {}) {
  try {
    return Optimizer(rule, std::move(rate), parameters).to_string();
  } catch (const ValueError& error) {
    return error.what();
  }
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Optimizer, KeepsDefaultsOfWhatIsNotNamed) {
  const Optimizer optimizer("rowwise_adagrad", 0.5, {{"epsilon", 0.25}});
  EXPECT_EQ(optimizer.rule(), "rowwise_adagrad");
  EXPECT_EQ(optimizer.learning_rate().value(), 0.5);
  EXPECT_THAT(optimizer.parameters(),
              ElementsAre(Pair("initial_accumulator_value", 0), Pair("epsilon", 0.25),
                          Pair("weight_decay", 0), Pair("weight_decay_mode", 0)));
  EXPECT_EQ(optimizer.parameter("epsilon"), 0.25);
}

TEST(Optimizer, PrintsRuleRateAndParameters) {
  EXPECT_EQ(Optimizer("sgd", 0.1).to_string(), "sgd(learning_rate=0.1)");
  EXPECT_EQ(Optimizer("rowwise_adagrad", LearningRate::dynamic([] { return 1.0; })).to_string(),
            "rowwise_adagrad(learning_rate=dynamic, initial_accumulator_value=0, epsilon=1e-08, "
            "weight_decay=0, weight_decay_mode=none)");
}

TEST(Optimizer, IsEqualByRuleRateAndParameters) {
  EXPECT_EQ(Optimizer("adagrad", 0.1),
            Optimizer("adagrad", 0.1, {{"initial_accumulator_value", 0.1}}));
  EXPECT_NE(Optimizer("adagrad", 0.1), Optimizer("adagrad", 0.2));
  EXPECT_NE(Optimizer("adagrad", 0.1),
            Optimizer("adagrad", 0.1, {{"initial_accumulator_value", 1}}));
  EXPECT_NE(Optimizer("adagrad", 0.1), Optimizer("sgd", 0.1));
}

TEST(Optimizer, NamesTheNearestRuleAndParameter) {
  EXPECT_EQ(text_or_refusal("adagard", 0.1),
            "optimizer 'adagard' is not known; the nearest is 'adagrad'");
  EXPECT_EQ(text_or_refusal("rowwise_adagrad", 0.1, {{"epsilom", 1}}),
            "rowwise_adagrad: there is no parameter 'epsilom'; the nearest is 'epsilon'");
  EXPECT_EQ(text_or_refusal("sgd", 0.1, {{"momentum", 1}}),
            "sgd: there is no parameter 'momentum'; it has none but the rate");
}

TEST(Optimizer, SaysWhatAParameterOfOtherSystemsIsCalledHere) {
  EXPECT_EQ(text_or_refusal("sgd", 0.1, {{"lr", 1}}),
            "sgd: there is no parameter 'lr'; it is called learning_rate here");
  EXPECT_EQ(text_or_refusal("torch.Adam", 0.1, {{"eps", 1}}),
            "adamw: there is no parameter 'eps'; it is called epsilon here");
  EXPECT_EQ(text_or_refusal("momentum", 0.1, {{"nesterov", true}}),
            "momentum: there is no parameter 'nesterov'; it is called use_nesterov here");
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{"eps", 1}}),
            "adagrad: there is no parameter 'eps'; there is 'initial_accumulator_value'");
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{"accumulator_value", 1}}),
            "adagrad: there is no parameter 'accumulator_value'; the nearest is "
            "'initial_accumulator_value'");
  EXPECT_EQ(text_or_refusal("fbgemm.EXACT_ROWWISE_ADAGRAD", 0.1, {}),
            "optimizer 'fbgemm.EXACT_ROWWISE_ADAGRAD' is not known; the nearest is "
            "'fbgemm.rowwise_adagrad'");
}

TEST(Optimizer, SaysWhichParameterBreaksWhichRange) {
  const std::string name = "initial_accumulator_value";
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{name, 0}}),
            "adagrad: " + name + " must be > 0, got 0");
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{name, -1}}),
            "adagrad: " + name + " must be > 0, got -1");
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{name, kInfinity}}),
            "adagrad: " + name + " must be finite and > 0, got inf");
  EXPECT_EQ(text_or_refusal("rowwise_adagrad", 0.1, {{"epsilon", -0.5}}),
            "rowwise_adagrad: epsilon must be >= 0, got -0.5");
}

TEST(Optimizer, RefusesWhatLeavesItsRangeInBinary32) {
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{"initial_accumulator_value", 1e-50}}),
            "adagrad: initial_accumulator_value must be > 0, got 1e-50 (in binary32 0)");
  EXPECT_EQ(text_or_refusal("sgd", 1e39),
            "sgd: learning_rate must be finite and >= 0, got 1e+39 (in binary32 inf)");
}

TEST(Optimizer, RefusesAParameterGivenTwice) {
  EXPECT_EQ(text_or_refusal("rowwise_adagrad", 0.1, {{"epsilon", 1}, {"epsilon", 2}}),
            "rowwise_adagrad: epsilon must be given once, got 2 after 1");
}

TEST(Optimizer, RefusesAConstantRateThatIsNegativeOrNotFinite) {
  EXPECT_EQ(text_or_refusal("sgd", -0.1), "sgd: learning_rate must be >= 0, got -0.1");
  EXPECT_EQ(text_or_refusal("sgd", kInfinity),
            "sgd: learning_rate must be finite and >= 0, got inf");
  EXPECT_EQ(text_or_refusal("sgd", std::numeric_limits<double>::quiet_NaN()),
            "sgd: learning_rate must be finite and >= 0, got nan");
  EXPECT_EQ(text_or_refusal("sgd", 0), "sgd(learning_rate=0)");
}

std::string text_or_refusal(const OptimizerOptions& options) {
  try {
    return Optimizer("adagrad", 0.1, {}, options).to_string();
  } catch (const ValueError& error) {
    return error.what();
  }
}

TEST(Optimizer, PrintsOptionsThatAreSet) {
  EXPECT_EQ(text_or_refusal({.clip_gradient_max = 2,
                             .weight_decay_factor = 0.5,
                             .multiply_weight_decay_factor_by_learning_rate = true,
                             .clip_weight_min = -1}),
            "adagrad(learning_rate=0.1, initial_accumulator_value=0.1, clip_gradient_max=2, "
            "weight_decay_factor=0.5, multiply_weight_decay_factor_by_learning_rate=true, "
            "clip_weight_min=-1)");
}

TEST(OptimizerCase, 38_GradientLimitsAreKeptEachByItself) {
  for (const char* rule : {"sgd", "adagrad", "adam", "ftrl", "adagrad_momentum"}) {
    const Optimizer upper(rule, 0.1, {}, {.clip_gradient_max = 1});
    EXPECT_EQ(upper.options().clip_gradient_min, std::nullopt);
    EXPECT_EQ(upper.options().clip_gradient_max, 1);
    const Optimizer both(rule, 0.1, {}, {.clip_gradient_min = -1, .clip_gradient_max = 1});
    EXPECT_EQ(both.options().clip_gradient_min, -1);
    EXPECT_EQ(both.options().clip_gradient_max, 1);
    EXPECT_NE(upper, both);
  }
}

TEST(OptimizerCase, 40_IsEqualByRuleAndRate) {
  for (const std::string& rule : optimizer_rules()) {
    EXPECT_EQ(Optimizer(rule, 0.1), Optimizer(rule, 0.1));
    EXPECT_NE(Optimizer(rule, 0.1), Optimizer(rule, 0.2));
    EXPECT_EQ(Optimizer(rule, 0.1) == Optimizer("sgd", 0.1), rule == "sgd");
  }
}

TEST(OptimizerCase, 39_RefusesGradientLimitsWithoutAccumulation) {
  EXPECT_EQ(text_or_refusal({.clip_gradient_max = 0, .use_gradient_accumulation = false}),
            "adagrad: use_gradient_accumulation must be true where clipvalue limits gradients, got "
            "clip_gradient_max = 0");
}

TEST(Optimizer, RefusesInvertedLimits) {
  EXPECT_EQ(text_or_refusal({.clip_gradient_min = 1, .clip_gradient_max = -1}),
            "adagrad: clip_gradient_min must be <= clip_gradient_max, got 1 and -1");
  EXPECT_EQ(text_or_refusal({.clip_weight_min = 1, .clip_weight_max = 0}),
            "adagrad: clip_weight_min must be <= clip_weight_max, got 1 and 0");
  EXPECT_EQ(text_or_refusal({.clip_weight_min = std::nan("")}),
            "adagrad: clip_weight_min and clip_weight_max must be numbers, got nan");
}

TEST(Optimizer, RefusesADecayThatIsNegativeOrNotFinite) {
  EXPECT_EQ(text_or_refusal({.weight_decay_factor = -0.5}),
            "adagrad: weight_decay_factor must be finite and >= 0, got -0.5");
  EXPECT_EQ(text_or_refusal({.weight_decay_factor = kInfinity}),
            "adagrad: weight_decay_factor must be finite and >= 0, got inf");
}

TEST(Optimizer, IsEqualByOptionsToo) {
  EXPECT_NE(Optimizer("sgd", 0.1), Optimizer("sgd", 0.1, {}, {.clip_weight_max = 1}));
  EXPECT_EQ(Optimizer("sgd", 0.1, {}, {.clip_weight_max = 1}),
            Optimizer("sgd", 0.1, {}, {.clip_weight_max = 1}));
}

TEST(Optimizer, TakesNumbersFlagsAndChoices) {
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{"initial_accumulator_value", true}}),
            "adagrad: initial_accumulator_value must be > 0, got true");
  EXPECT_EQ(text_or_refusal("adagrad", 0.1, {{"initial_accumulator_value", "l2"}}),
            "adagrad: initial_accumulator_value must be > 0, got 'l2'");
}

TEST(Optimizer, HasOnlyItsOwnParameters) {
  EXPECT_THROW(Optimizer("sgd", 0.1).parameter("epsilon"), KeyError);
}

TEST(LearningRate, AsksItsFunctionEachTime) {
  int calls = 0;
  const LearningRate rate = LearningRate::dynamic([&] { return 0.5 * ++calls; });
  EXPECT_TRUE(rate.is_dynamic());
  EXPECT_EQ(rate.value(), 0.5);
  EXPECT_EQ(rate.value(), 1);
}

TEST(LearningRate, IsEqualByConstantOrByFunctionObject) {
  const auto half = [] { return 0.5; };
  const LearningRate one = LearningRate::dynamic(half), other = LearningRate::dynamic(half),
                     copy = one;
  EXPECT_EQ(one, copy);
  EXPECT_NE(one, other);
  EXPECT_NE(one, LearningRate(0));
  EXPECT_EQ(LearningRate(0.5), LearningRate(0.5));
}

TEST(LearningRate, RefusesAnEmptyFunction) {
  EXPECT_THROW(LearningRate::dynamic(nullptr), ValueError);
}

TEST(OptimizerRules, AreTheNamesThatAnOptimizerTakes) {
  EXPECT_THAT(optimizer_rules(), IsSupersetOf({"adagrad", "rowwise_adagrad", "sgd"}));
  for (const std::string& rule : optimizer_rules()) EXPECT_EQ(Optimizer(rule, 1).rule(), rule);
}

TEST(Optimizer, RulesDescribeThemselves) {
  const std::vector<OptimizerRule> rules = describe_optimizer_rules();
  std::vector<std::string> names;
  for (const OptimizerRule& rule : rules) names.push_back(rule.name);
  EXPECT_EQ(names, optimizer_rules());
  const OptimizerRule& rowwise =
      *std::ranges::find(rules, std::string("rowwise_adagrad"), &OptimizerRule::name);
  EXPECT_EQ(rowwise.default_learning_rate, 0.01);
  ASSERT_EQ(rowwise.parameters.size(), 4u);
  EXPECT_EQ(rowwise.parameters[1].name, "epsilon");
  EXPECT_EQ(rowwise.parameters[1].default_value, Setting(1e-8));
  EXPECT_EQ(rowwise.parameters[3].default_value, Setting("none"));
  EXPECT_EQ(rowwise.parameters[3].choices.size(), 3u);
  ASSERT_EQ(rowwise.slots.size(), 1u);
  EXPECT_EQ(rowwise.slots[0].name, "accumulators");
  EXPECT_TRUE(rowwise.slots[0].row_wise);
  const OptimizerRule& adam = *std::ranges::find(rules, std::string("adam"), &OptimizerRule::name);
  EXPECT_EQ(adam.parameters[3].name, "lazy_adam");
  EXPECT_EQ(adam.parameters[3].default_value, Setting(true));
  EXPECT_EQ(adam.parameters[0].range, "in [0, 1)");
}

TEST(Optimizer, SlotsStartAsItsParametersSay) {
  const Optimizer adagrad("adagrad", 0.1, {{"initial_accumulator_value", 0.5}});
  ASSERT_EQ(slots_of(adagrad).size(), 1u);
  EXPECT_EQ(slots_of(adagrad)[0].name, "accumulators");
  EXPECT_EQ(slots_of(adagrad)[0].initial_value, 0.5f);
  EXPECT_TRUE(slots_of(Optimizer("sgd", 0.1)).empty());
}

}  // namespace
}  // namespace embertable
