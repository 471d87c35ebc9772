#include "apps/jobs/run/replica_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::int64_t> numbers(const IntegerSpan& values) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < values.size(); ++i) numbers.push_back(values[i]);
  return numbers;
}

/// Feature 0 has two ids a sample; feature 1, which stands first in the structure, one list.
class ReplicaBatchesTest : public testing::Test {
 protected:
  void fill(std::int32_t samples, bool weighted = false) {
    StepIds& pairs = input_.ids()[0];
    StepIds& lists = input_.ids()[1];
    pairs.ids.clear();
    lists.ids.clear();
    lists.weights.clear();
    lists.splits.assign(1, 0);
    for (std::int32_t s = 0; s < samples; ++s) {
      pairs.ids.insert(pairs.ids.end(), {10 * s, 10 * s + 1});
      for (std::int32_t i = 0; i < s % 3; ++i) {
        lists.ids.push_back(100 * s + i);
        if (weighted) lists.weights.push_back(0.5f);
      }
      lists.splits.push_back(static_cast<std::int64_t>(lists.ids.size()));
    }
    batches_ = input_.cut(samples);
  }
  std::vector<std::int64_t> pairs(std::size_t replica) const {
    return numbers(std::get<DenseIds>(batches_[replica].features[1]).values);
  }
  std::vector<std::int64_t> splits(std::size_t replica) const {
    return numbers(std::get<RaggedIds>(batches_[replica].features[0]).row_splits);
  }
  std::vector<std::int64_t> values(std::size_t replica) const {
    return numbers(std::get<RaggedIds>(batches_[replica].features[0]).values);
  }
  ReplicaBatches input_{Structure::tuple({Structure(), Structure()}),
                        {{.name = "pair", .table = "t", .width = 2},
                         {.name = "list", .table = "t", .width = 1, .lists = true}},
                        {1, 0},
                        6,
                        3};
  std::span<const Batch> batches_;
};

TEST_F(ReplicaBatchesTest, CutAStepIntoReplicas) {
  fill(6);
  EXPECT_THAT(pairs(0), ElementsAre(0, 1, 10, 11));
  EXPECT_THAT(pairs(2), ElementsAre(40, 41, 50, 51));
  EXPECT_THAT(splits(0), ElementsAre(0, 0, 1));
  EXPECT_THAT(splits(1), ElementsAre(0, 2, 2));
  EXPECT_THAT(values(1), ElementsAre(200, 201));
  EXPECT_TRUE(std::holds_alternative<std::monostate>((*batches_[1].weights)[0]));
}

TEST_F(ReplicaBatchesTest, ASmallStepLeavesTheLastReplicasEmpty) {
  fill(6);
  fill(3);
  EXPECT_THAT(pairs(1), ElementsAre(20, 21));
  EXPECT_THAT(pairs(2), IsEmpty());
  EXPECT_THAT(splits(1), ElementsAre(0, 2));
  EXPECT_THAT(splits(2), ElementsAre(0));
  EXPECT_THAT(values(2), IsEmpty());
}

TEST_F(ReplicaBatchesTest, WeightsGoWithTheirIds) {
  fill(6, true);
  const auto& weights = std::get<RaggedWeights>((*batches_[1].weights)[0]);
  EXPECT_EQ(weights.values.size(), 2);
  fill(6);
  EXPECT_TRUE(std::holds_alternative<std::monostate>((*batches_[1].weights)[0]));
}

}  // namespace
}  // namespace embertable::jobs
