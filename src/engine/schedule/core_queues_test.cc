#include "engine/schedule/core_queues.h"

#include <gtest/gtest.h>

namespace embertable::engine {
namespace {

const std::thread::id kMe = std::this_thread::get_id();
const std::thread::id kNobody;

/// Each core of the range enqueues a batch of `step`.
void enqueue(CoreQueues& queues, CoreRange cores, Step& step) {
  queues.next_of(cores.first) = &step;
  queues.count_batches(cores);
}

TEST(CoreQueues, CoresAreNamedByTheirReplica) {
  EXPECT_EQ(CoreQueues(4, 1, 1).name_of(3), "replica 3");
  EXPECT_EQ(CoreQueues(4, 2, 1).name_of(3), "replica 1 (core 1)");
}

TEST(CoreQueues, AHeldCoreBlocksEveryRangeThatHasIt) {
  CoreQueues queues(4, 1, 1);
  queues.hold({1, 2}, kMe);
  EXPECT_FALSE(queues.may_open({0, 4}));
  EXPECT_FALSE(queues.may_open({1, 2}));
  EXPECT_TRUE(queues.may_open({2, 4}));
  queues.hold({1, 2}, kNobody);
  EXPECT_TRUE(queues.may_open({0, 4}));
}

TEST(CoreQueues, ThereIsRoomForAsManyBatchesAsTheCapacity) {
  CoreQueues queues(1, 1, 2);
  Step first, second;
  enqueue(queues, {0, 1}, first);
  EXPECT_TRUE(queues.may_open({0, 1}));
  enqueue(queues, {0, 1}, second);
  EXPECT_FALSE(queues.may_open({0, 1}));
  EXPECT_EQ(queues.pop(), &first);
  EXPECT_TRUE(queues.may_open({0, 1}));
  EXPECT_EQ(queues.next_of(0), nullptr);
  EXPECT_EQ(queues.front(), &second);
}

TEST(CoreQueues, AStepIsCompleteWhenEveryCoreHasABatch) {
  CoreQueues queues(2, 1, 1);
  Step step;
  enqueue(queues, {0, 1}, step);
  EXPECT_TRUE(queues.has_batch(0));
  EXPECT_FALSE(queues.is_complete());
  enqueue(queues, {1, 2}, step);
  EXPECT_TRUE(queues.is_complete());
  queues.pop();
  EXPECT_FALSE(queues.is_complete());
}

TEST(CoreQueues, ABatchIsBeingFilledWhileItsCoreIsHeld) {
  CoreQueues queues(2, 1, 2);
  Step step;
  queues.next_of(0) = &step;
  queues.hold({0, 1}, kMe);
  EXPECT_TRUE(queues.is_filling(step, 0));
  EXPECT_FALSE(queues.is_filling(step, 1));
  queues.count_batches({0, 1});
  EXPECT_FALSE(queues.is_filling(step, 0));
}

TEST(CoreQueues, BatchesThatSomeCoreLacksAreRemoved) {
  CoreQueues queues(3, 1, 2);
  Step first, second, open;
  std::vector<Step*> free;
  enqueue(queues, {0, 3}, first);
  EXPECT_EQ(queues.remove_unmatched(free), 0);
  enqueue(queues, {0, 2}, second);
  EXPECT_EQ(queues.remove_unmatched(free), 2);
  EXPECT_EQ(free, std::vector<Step*>{&second});
  for (std::int32_t core = 0; core < 3; ++core) EXPECT_EQ(queues.enqueued(core), 1) << core;
  EXPECT_TRUE(queues.is_complete());
  EXPECT_EQ(queues.front(), &first);
  EXPECT_EQ(queues.next_of(0), nullptr);

  // A step that a core has opened and whose batch was refused goes too.
  queues.pop();
  free.clear();
  enqueue(queues, {0, 1}, second);
  queues.next_of(0) = &open;
  EXPECT_EQ(queues.remove_unmatched(free), 1);
  EXPECT_EQ(free, (std::vector<Step*>{&second, &open}));
  EXPECT_EQ(queues.second(), nullptr);
}

}  // namespace
}  // namespace embertable::engine
