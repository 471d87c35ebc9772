#include <gtest/gtest.h>

#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference mdl_adagrad_light_reference(
    "mdl_adagrad_light",
    [](const Optimizer& optimizer, double rate, std::int64_t, Numbers& w,
       std::vector<Numbers>& slots, const Numbers& g) {
      const double p = -binary32(optimizer, "lr_power");
      for (std::size_t i = 0; i < w.size(); ++i) {
        Bounded &a = slots[0][i], &x = slots[1][i];
        a += g[i] * g[i];
        x -= quotient(rate * g[i], pow(a, p));
        w[i] = x;
      }
    },
    {{{"lr_power", -0.25}}, {{"lr_power", 0}}, {{"lr_power", -0.6}}});

/// Why a parameter is refused.
std::string not_offered(const std::string& name, const Setting& value) {
  try {
    Optimizer("mdl_adagrad_light", 0.1, {{name, value}});
    return "";
  } catch (const NotImplemented& error) {
    return error.what();
  }
}

TEST(MdlAdagradLight, TwoStepsByHand) {
  TestedRow row(Optimizer("mdl_adagrad_light", 1, {{"initial_accumulator_value", 7}}), {10, 1});
  EXPECT_EQ(row.step(10, {3, 0}), (Floats{-7.5f, 0}));  // a = 16; the weights were 0
  EXPECT_EQ(row.slot(0), (Floats{16, 7}));
  EXPECT_EQ(row.slot(1), (Floats{-7.5f, 0}));
  EXPECT_EQ(row.step(10, {3, 3}), (Floats{-13.5f, -7.5f}));  // a = 25, 16
  EXPECT_EQ(row.slot(2), (Floats{0, 0}));
}

TEST(MdlAdagradLight, DividesByThePowerOfTheAccumulator) {
  TestedRow row(
      Optimizer("mdl_adagrad_light", 1, {{"initial_accumulator_value", 7}, {"lr_power", -0.25}}),
      {0});
  EXPECT_EQ(row.step(1, {3}), Floats{-1.5f});  // 16^0.25
}

TEST(MdlAdagradLight, ClipsTheRowButNotItsWeights) {
  TestedRow row(Optimizer("mdl_adagrad_light", 1, {{"initial_accumulator_value", 7}},
                          {.clip_weight_min = -1}),
                {0});
  EXPECT_EQ(row.step(10, {3}), Floats{-1});
  EXPECT_EQ(row.slot(1), Floats{-7.5f});
}

TEST(MdlAdagradLight, SlotsAreAccumulatorsWeightsAndBenefits) {
  TestedRows rows(Optimizer("mdl_adagrad_light", 0.1), 1, 1);
  EXPECT_EQ(rows.slot_name(0), "accumulators");
  EXPECT_EQ(rows.slot_values(0, 0), Floats{0.1f});
  EXPECT_EQ(rows.slot_name(1), "weights");
  EXPECT_EQ(rows.slot_values(1, 0), Floats{0});
  EXPECT_EQ(rows.slot_name(2), "benefits");
  EXPECT_EQ(rows.slot_values(2, 0), Floats{0});
}

TEST(OptimizerCase, 90_MdlAdagradLightDoesNotOfferBenefits) {
  const std::string reason = ": the update by MDL benefits is not offered";
  EXPECT_EQ(not_offered("mdl_regularize", true),
            "mdl_adagrad_light: mdl_regularize must be false, got true" + reason);
  EXPECT_EQ(not_offered("hard_limit_min_benefit", true),
            "mdl_adagrad_light: hard_limit_min_benefit must be false, got true" + reason);
  for (const char* name : {"l2", "min_servable_mdl_benefit", "mdl_mix_in_margin",
                           "mdl_benefit_rampup_coeff", "mdl_min_weight", "benefit_revisit_scale",
                           "max_event_benefit", "max_total_benefit", "mdl_hard_limit"}) {
    EXPECT_EQ(not_offered(name, 0.5),
              "mdl_adagrad_light: " + std::string(name) + " must be 0, got 0.5" + reason);
  }
}

TEST(MdlAdagradLight, RefusesDecayAPositivePowerAndAnAccumulatorThatIsNotPositive) {
  EXPECT_EQ(refusal("mdl_adagrad_light", {}, {.weight_decay_factor = 0.125}),
            "mdl_adagrad_light: weight_decay_factor must be 0, got 0.125");
  EXPECT_EQ(refusal("mdl_adagrad_light", {{"lr_power", 0.5}}),
            "mdl_adagrad_light: lr_power must be <= 0, got 0.5");
  EXPECT_EQ(refusal("mdl_adagrad_light", {{"initial_accumulator_value", 0}}),
            "mdl_adagrad_light: initial_accumulator_value must be > 0, got 0");
}

}  // namespace
}  // namespace embertable
