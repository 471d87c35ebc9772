#include "engine/schedule/progress.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "embertable/errors.h"
#include "testing/refusal.h"

namespace embertable::engine {
namespace {

std::string refused_dequeue(const Progress& progress) {
  return refusal<StateError>([&] { progress.require_not_failed("dequeue"); });
}

TEST(Progress, GradientsCountBeforeTheirUpdates) {
  Progress progress;
  progress.steps().count_step();
  progress.steps().count_taken();
  EXPECT_EQ(progress.steps().taken(), 2);
  EXPECT_EQ(progress.steps().updates(), 1);
  progress.steps().set(7);
  EXPECT_EQ(progress.steps().taken(), 7);
  EXPECT_EQ(progress.steps().updates(), 7);
}

TEST(Progress, StepsEndBeforeTheirNumberOverflows) {
  Progress progress;
  progress.steps().set((std::int64_t{1} << 62) - 1);
  EXPECT_EQ(progress.steps().next(), std::int64_t{1} << 62);
  progress.steps().count_step();
  EXPECT_THROW(progress.steps().next(), StateError);
  EXPECT_EQ(progress.steps().taken(), std::int64_t{1} << 62);
}

TEST(Progress, AThrowingChangeFailsTheEngineAndSaysWhy) {
  Progress progress;
  progress.fail_if_thrown([] {});
  EXPECT_EQ(refused_dequeue(progress), "");
  EXPECT_THROW(progress.fail_if_thrown([] { throw std::runtime_error("no threads"); }),
               std::runtime_error);
  EXPECT_EQ(refused_dequeue(progress), "dequeue: the engine failed in an earlier step: no threads");
  EXPECT_THROW(progress.fail_if_thrown([] { throw 1; }), int);
  EXPECT_EQ(progress.failure(), "in an earlier step: unknown error");
}

TEST(Progress, WaitingThreadsAreToldOfFailureAndRecovery) {
  std::vector<std::string> told;
  Progress progress([&](const std::string& why) { told.push_back(why); },
                    [&] { told.emplace_back("go on"); });
  progress.fail("in a restore: disk");
  progress.recover();
  EXPECT_EQ(told, (std::vector<std::string>{"the engine failed in a restore: disk", "go on"}));
}

TEST(Progress, RecoveryForgetsABatchWhoseUpdateWasLost) {
  Progress progress;
  progress.steps().count_step();
  progress.steps().count_taken();
  progress.fail("in an earlier step: disk");
  progress.recover();
  EXPECT_EQ(refused_dequeue(progress), "");
  EXPECT_EQ(progress.steps().taken(), 1);
}

}  // namespace
}  // namespace embertable::engine
