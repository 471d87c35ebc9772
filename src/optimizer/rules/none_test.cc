#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "optimizer/gradient_sums.h"
#include "testing/rule_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;

const AddReference none_reference("none", [](const Optimizer&, double, std::int64_t, Numbers&,
                                             std::vector<Numbers>&, const Numbers&) {});

TEST(None, ChangesNothing) {
  TestedRow row(Optimizer("none", 0.5), {1, -2, 3});
  EXPECT_EQ(row.step(0.5f, {2, 0, -4}), (Floats{1, -2, 3}));
}

TEST(None, KeepsNoSlots) { EXPECT_EQ(TestedRows(Optimizer("none", 0), 1, 4).num_slots(), 0); }

TEST(None, HandsOnRowsWithTheirGradients) {
  Floats memory = {1, 2, -1, /**/ 3, 4, -1, /**/ 5, 6, -1};
  const RowBlock rows = {.row = memory.data(), .stride = 3, .dim = 2, .rows = 3};
  float* const row[] = {memory.data() + 6, memory.data()};
  const Floats first = {0.5f, 0.25f}, second = {8, 9};
  const float* const gradient[] = {first.data(), second.data()};
  const RowTile tile = {.row = row, .slot = {}, .gradient = gradient, .rows = 2, .dim = 2};
  const Optimizer none("none", 0);
  const Rule& rule = rule_of(none);
  for (const SimdLevel level : usable_levels()) {
    GradientSums sums;
    sums.start(rows, 2);
    StepScalars step = rule.begin_step(none, {});
    step.context = &sums;
    rule.update_rows(level, none)(tile, step);
    ASSERT_EQ(sums.size(), 2);
    EXPECT_EQ(sums.row(0), 2);
    EXPECT_EQ(sums.row(1), 0);
    EXPECT_EQ(Floats(sums.sum(0), sums.sum(0) + 2), first);
    EXPECT_EQ(Floats(sums.sum(1), sums.sum(1) + 2), second);
    sums.start(rows, 2);
    EXPECT_EQ(sums.size(), 0);
  }
}

TEST(None, RefusesWhatWouldChangeRowsOrLeaveNoSum) {
  EXPECT_EQ(refusal("none", {}, {.use_gradient_accumulation = false}),
            "none: use_gradient_accumulation must be true, got false");
  EXPECT_EQ(refusal("none", {}, {.weight_decay_factor = 0.5}),
            "none: limits and weight_decay_factor must be unset where no row changes, got "
            "none(learning_rate=0.1, weight_decay_factor=0.5)");
  EXPECT_EQ(refusal("none", {}, {.clip_weight_max = 1}),
            "none: limits and weight_decay_factor must be unset where no row changes, got "
            "none(learning_rate=0.1, clip_weight_max=1)");
}

}  // namespace
}  // namespace embertable
