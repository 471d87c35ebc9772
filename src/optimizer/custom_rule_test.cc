// Rules of the caller's own, as objects. What they do in a step: tests/engine/custom_rules_test.cc.
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "embertable/optimizer.h"
#include "optimizer/rule.h"

namespace embertable {
namespace {

/// Complete, with a slot of dim numbers and one of one.
CustomRule complete() {
  return {.name = "mine",
          .slot_names = {"sums", "counts"},
          .slot_initializers = {Initializer::zeros(), Initializer::constant(1)},
          .slot_dims = {2, 1},
          .hyperparameters = {{"beta", 0.5}},
          .function = CustomRule::Rows([](const CustomRow&) {})};
}

template <class Change>
std::string custom_refusal(Change change) {
  CustomRule rule = complete();
  OptimizerOptions options;
  change(rule, options);
  try {
    Optimizer::custom(rule, 0.1, options);
    return "";
  } catch (const ValueError& error) {
    return error.what();
  }
}

TEST(CustomRule, SaysItsNameNumbersAndSlots) {
  const Optimizer optimizer = Optimizer::custom(complete(), 0.25);
  EXPECT_EQ(optimizer.rule(), "mine");
  EXPECT_EQ(optimizer.parameter("beta"), 0.5);
  EXPECT_EQ(optimizer.to_string(), "mine(learning_rate=0.25, beta=0.5)");
  const std::vector<RuleSlot> slots = rule_of(optimizer).slots(optimizer);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].name, "sums");
  EXPECT_FALSE(slots[0].row_wise);
  EXPECT_EQ(slots[1].name, "counts");
  EXPECT_TRUE(slots[1].row_wise);
}

TEST(CustomRule, EqualsItsCopiesOnly) {
  const Optimizer optimizer = Optimizer::custom(complete(), 0.25), copy = optimizer;
  EXPECT_EQ(optimizer, copy);
  EXPECT_FALSE(optimizer == Optimizer::custom(complete(), 0.25));
  EXPECT_FALSE(optimizer == optimizer.with_learning_rate(0.5));
  EXPECT_EQ(optimizer.with_learning_rate(0.5).custom_rule(), optimizer.custom_rule());
}

TEST(CustomRule, Case047_SaysWhatIsMissingOrTooMuch) {
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.slot_initializers.pop_back(); }),
            "mine: there must be one of slot_initializers for each of slot_names, got 1 and 2");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.slot_dims = {2}; }),
            "mine: slot_dims must be empty or one for each of slot_names, got 1 and 2");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) {
              rule.slot_dims = {2, 3};
            }),
            "mine: slot_dims must be 1 or 2, got 3 for slot 'counts'");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) {
              rule.function = CustomRule::Elements([](std::span<const float>, std::span<float>) {});
            }),
            "mine: slot_dims must be 2 with a function of elements, got 1 for slot 'counts'");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) {
              rule.slot_names = {"a", "a"};
            }),
            "mine: slot_names must differ, be not empty and have no '/', got 'a'");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) {
              rule.slot_names = {"a", "\xff"};
            }),
            "mine: a name of slot_names must be UTF-8, got \"\\xff\"");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.hyperparameters[0].first = "\xff"; }),
            "mine: a name of hyperparameters must be UTF-8, got \"\\xff\"");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.name = "\xff"; }),
            "custom: name must be UTF-8, got \"\\xff\"");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.name = "sgd"; }),
            "custom: name must be given and not that of a known rule, got 'sgd'");
  for (const char* name : {"ADAM", "Sgd", "keras.adam"})  // names that Optimizer takes
    EXPECT_EQ(
        custom_refusal([=](CustomRule& rule, auto&) { rule.name = name; }),
        std::string("custom: name must be given and not that of a known rule, got '") + name + "'");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.function = CustomRule::Tiles(); }),
            "mine: function must be given, got none");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.hyperparameters[0].second = 1e39; }),
            "mine: beta must be finite, got 1e+39");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, auto&) { rule.hyperparameters.resize(15); }),
            "mine: hyperparameters must be at most 14, got 15");
  EXPECT_EQ(custom_refusal([](CustomRule& rule, OptimizerOptions& options) {
              rule.steps_every_row = true;
              options.use_gradient_accumulation = false;
            }),
            "mine: use_gradient_accumulation must be true where every row steps, got false");
}

TEST(CustomRule, ChecksWhatIsCommonFirst) {
  EXPECT_EQ(custom_refusal([](CustomRule& rule, OptimizerOptions& options) {
              rule.slot_dims = {7, 7};
              options.clip_weight_min = 1;
              options.clip_weight_max = 0;
            }),
            "mine: clip_weight_min must be <= clip_weight_max, got 1 and 0");
}

std::string program_refusal(std::int32_t inputs, std::int32_t outputs,
                            OptimizerOptions options = {}) {
  try {
    user_defined_program(
        inputs, outputs, [](std::span<const float>, std::span<float>) {}, 0, {},
        std::move(options));
    return "";
  } catch (const ValueError& error) {
    return error.what();
  }
}

std::vector<std::string> slots_of(std::int32_t inputs, std::int32_t outputs) {
  const Optimizer optimizer =
      user_defined_program(inputs, outputs, [](std::span<const float>, std::span<float>) {});
  std::vector<std::string> names;
  for (const RuleSlot& slot : rule_of(optimizer).slots(optimizer)) names.emplace_back(slot.name);
  return names;
}

TEST(UserDefinedProgram, Case054_HasASlotForEveryOutputButTheRow) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(slots_of(3, 2), Names{"Slot_0"});
  EXPECT_EQ(slots_of(4, 2), Names{"Slot_0"});
  EXPECT_EQ(slots_of(2, 1), Names{});
  EXPECT_EQ(slots_of(3, 1), Names{});
  EXPECT_EQ(program_refusal(1, 1),
            "user_defined_program: inputs must be at least 2 and 1 or 2 more than outputs, got 1 "
            "inputs and 1 outputs");
  EXPECT_EQ(program_refusal(5, 2),
            "user_defined_program: inputs must be at least 2 and 1 or 2 more than outputs, got 5 "
            "inputs and 2 outputs");
  EXPECT_EQ(program_refusal(9, 8),
            "user_defined_program: slots must be at most 6 with accumulation, got 9 inputs and 8 "
            "outputs");
  EXPECT_EQ(program_refusal(9, 8, {.use_gradient_accumulation = false}), "");
}

}  // namespace
}  // namespace embertable
