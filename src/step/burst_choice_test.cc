#include "step/burst_choice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace embertable {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

/// Nanoseconds that an item of a step takes for each of its entries.
using Cost = std::function<double(std::int64_t step, bool bursts)>;

/// Takes steps of `items` items. Returns how many items of the steps from `from` on went in bursts.
int bursts_of(BurstChoice& choice, int steps, int items, int from, const Cost& cost) {
  int bursts = 0;
  for (int step = 0; step < steps; ++step) {
    choice.start(true);
    for (int item = 0; item < items; ++item) {
      const bool way = choice.bursts(item);
      const std::int64_t entries = 1000 + 100 * item;
      if (choice.tries())
        choice.took(way, entries,
                    Nanoseconds(std::int64_t(cost(step, way) * static_cast<double>(entries))));
      bursts += step >= from && way ? 1 : 0;
    }
  }
  return bursts;
}

TEST(BurstChoice, SettlesOnTheFasterWayAndTriesTheOtherNowAndThen) {
  for (const int items : {1, 2, 7}) {
    for (const double in_bursts : {0.97, 1.03}) {
      BurstChoice choice;
      const int bursts = bursts_of(choice, 1020, items, 20, [&](std::int64_t, bool way) {
        return 20 * (way ? in_bursts : 1);
      });
      const int faster = in_bursts < 1 ? bursts : 1000 * items - bursts;
      EXPECT_GE(faster, 950 * items) << items << " items, " << in_bursts;
      EXPECT_LT(faster, 990 * items);
    }
  }
}

TEST(BurstChoice, TriesEachItemBothWays) {
  BurstChoice choice;
  int bursts[4] = {}, trials = 0;
  for (int step = 0; step < 20; ++step) {
    choice.start(true);
    for (int item = 0; item < 4; ++item) {
      int calls = 0;
      choice.time(item, 1000, [&](bool way) {
        ++calls;
        EXPECT_EQ(way, choice.bursts(item));
        bursts[item] += choice.tries() && way ? 1 : 0;
      });
      EXPECT_EQ(calls, 1);
    }
    trials += choice.tries() ? 1 : 0;
  }
  EXPECT_EQ(trials, 16);
  for (const int count : bursts) EXPECT_EQ(count, 8);
}

TEST(BurstChoice, FirstStepsDecideNothing) {
  for (const double in_bursts : {0.98, 1.02}) {
    BurstChoice choice;
    const int bursts = bursts_of(choice, 120, 1, 20, [&](std::int64_t step, bool way) {
      return (step < 2 ? 200 : 20) * (way ? in_bursts : 1);
    });
    EXPECT_GE(in_bursts < 1 ? bursts : 100 - bursts, 90);
  }
}

TEST(BurstChoice, KindsOfBatchesThatTakeTurnsDecideNothing) {
  for (const int kinds : {2, 3, 4, 5}) {
    for (int start = 0; start < kinds; ++start) {
      BurstChoice choice;
      const int bursts = bursts_of(choice, 4000, 1, 1000, [&](std::int64_t step, bool way) {
        return (way ? 0.95 : 1) * ((step + start) % kinds == 0 ? 30 : 20);
      });
      EXPECT_GE(bursts, 2700) << kinds << " kinds from " << start;
    }
  }
}

TEST(BurstChoice, OneSlowItemDecidesNothing) {
  BurstChoice choice;
  bursts_of(choice, 1000, 4, 0, [](std::int64_t, bool way) { return way ? 0.9 : 1; });
  const int bursts = bursts_of(choice, 480, 4, 0, [](std::int64_t step, bool way) {
    return step == 40 && way ? 1000 : way ? 0.9 : 1;
  });
  EXPECT_GE(bursts, 4 * 450);
}

TEST(BurstChoice, FollowsAMachineThatChanges) {
  BurstChoice choice;
  for (int change = 0; change < 3; ++change) {
    EXPECT_LE(bursts_of(choice, 2000, 2, 1000, [](std::int64_t, bool way) { return way ? 2 : 1; }),
              100);
    EXPECT_GE(bursts_of(choice, 2000, 2, 1000, [](std::int64_t, bool way) { return way ? 1 : 2; }),
              1900);
  }
}

TEST(BurstChoice, StepsThatHaveNoBurstsCountNothing) {
  BurstChoice choice;
  for (int step = 0; step < 100; ++step) {
    choice.start(false);
    EXPECT_FALSE(choice.tries());
    EXPECT_FALSE(choice.bursts(step));
  }
  EXPECT_GE(bursts_of(choice, 220, 2, 20, [](std::int64_t, bool way) { return way ? 1 : 2; }), 380);
}

TEST(BurstChoice, AClockThatStandsStillDecidesNothing) {
  BurstChoice choice;
  EXPECT_GE(bursts_of(choice, 220, 2, 20, [](std::int64_t, bool) { return 0; }), 380);
}

}  // namespace
}  // namespace embertable
