#include "kernels/stage_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace embertable {
namespace {

void spend(Stage stage) {
  StageLap lap;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  lap.to(stage);
}

TEST(StageClock, CountsOnlyWhereItIsAskedTo) {
  spend(Stage::kGroup);
  EXPECT_EQ(take_stage_seconds(Stage::kGroup), 0);
  time_stages(true);
  spend(Stage::kGroup);
  spend(Stage::kGroup);
  time_stages(false);
  EXPECT_EQ(take_stage_seconds(Stage::kScatter), 0);
  EXPECT_GE(take_stage_seconds(Stage::kGroup), 0.004);
  EXPECT_EQ(take_stage_seconds(Stage::kGroup), 0) << "taken";
}

}  // namespace
}  // namespace embertable
