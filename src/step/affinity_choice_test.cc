#include "step/affinity_choice.h"

#include <gtest/gtest.h>

#include <utility>

namespace embertable {
namespace {

/// Takes steps. kept, shared: seconds a float, where tables are kept and where they are shared.
/// Returns how many steps kept them.
int kept_of(AffinityChoice& choice, int steps, double kept, double shared) {
  int count = 0;
  for (int i = 0; i < steps; ++i) {
    const bool keeps = choice.keeps_tables();
    const double floats = 1000 + i;
    choice.took(keeps, floats, floats * (keeps ? kept : shared));
    count += keeps ? 1 : 0;
  }
  return count;
}

TEST(AffinityChoice, SettlesOnTheFasterWayAndTriesTheOtherNowAndThen) {
  AffinityChoice keeping, sharing;
  EXPECT_TRUE(keeping.keeps_tables());
  kept_of(keeping, 50, 1, 2);
  kept_of(sharing, 50, 2, 1);
  EXPECT_GE(kept_of(keeping, 10'000, 1, 2), 9500);
  EXPECT_LT(kept_of(keeping, 1000, 1, 2), 1000);
  EXPECT_LE(kept_of(sharing, 10'000, 2, 1), 500);
  EXPECT_GT(kept_of(sharing, 1000, 2, 1), 0);
}

TEST(AffinityChoice, TriesTheOtherWaySeldomWhereStepsAreShort) {
  AffinityChoice choice;
  kept_of(choice, 50, 1e-7, 2e-7);
  const int kept = kept_of(choice, 10'000, 1e-7, 2e-7);  // 6 seconds or somewhat more
  EXPECT_GE(kept, 10'000 - 12 * 30);
  EXPECT_LT(kept, 10'000 - 12 * 10);
}

TEST(AffinityChoice, FollowsAMachineThatChanges) {
  AffinityChoice choice;
  for (int change = 0; change < 3; ++change) {
    kept_of(choice, 300, 1, 2);
    EXPECT_GE(kept_of(choice, 1000, 1, 2), 900);
    kept_of(choice, 300, 2, 1);
    EXPECT_LE(kept_of(choice, 1000, 2, 1), 100);
  }
}

TEST(AffinityChoice, ComparesBatchesOfKindsThatTakeTurnsWithTheirLike) {
  for (const int kinds : {2, 3, 4}) {
    for (const bool in_flight : {false, true}) {  // looked up before the last update
      for (int start = 0; start < kinds; ++start) {
        AffinityChoice choice;
        int kept = 0;
        bool queued = choice.keeps_tables();
        for (int i = start; i < 10'000; ++i) {
          const bool keeps =
              in_flight ? std::exchange(queued, choice.keeps_tables()) : choice.keeps_tables();
          choice.took(keeps, 10, (keeps ? 1 : 1.2) * (i % kinds == 0 ? 1.5 : 1));
          kept += keeps ? 1 : 0;
        }
        EXPECT_GE(kept, 9000) << kinds << " kinds from " << start << ", in flight: " << in_flight;
      }
    }
  }
}

TEST(AffinityChoice, OneSlowStepDecidesNothing) {
  AffinityChoice choice;
  int kept = 0;
  for (int i = 0; i < 5000; ++i) {
    const bool keeps = choice.keeps_tables();
    const double disturbed = i % 7 == 0 ? 100 : 1;
    choice.took(keeps, 10, (keeps ? 1 : 1.1) * disturbed);
    kept += keeps ? 1 : 0;
  }
  EXPECT_GE(kept, 4600);
}

TEST(AffinityChoice, StepsOfTheOtherWayAndEmptyOnesCountNothing) {
  AffinityChoice choice;
  for (int i = 0; i < 1000; ++i) {
    choice.took(false, 10, 1e-9);
    choice.took(true, 0, 1);
  }
  EXPECT_TRUE(choice.keeps_tables());
  kept_of(choice, 50, 1, 2);
  EXPECT_TRUE(choice.keeps_tables());
}

}  // namespace
}  // namespace embertable
