#include "kernels/stage_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace embertable {
namespace {

void spend(StepStage stage) {
  StageLap lap;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  lap.to(stage);
}

TEST(StageClock, CountsOnlyWhereItIsAskedTo) {
  spend(StepStage::kGroup);
  EXPECT_EQ(take_stage_seconds(StepStage::kGroup), 0);
  time_stages(true);
  spend(StepStage::kGroup);
  spend(StepStage::kGroup);
  time_stages(false);
  EXPECT_EQ(take_stage_seconds(StepStage::kScatter), 0);
  EXPECT_GE(take_stage_seconds(StepStage::kGroup), 0.004);
  EXPECT_EQ(take_stage_seconds(StepStage::kGroup), 0) << "taken";
}

}  // namespace
}  // namespace embertable
