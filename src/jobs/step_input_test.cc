#include "jobs/step_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Sample s has id s + 10, owner s % 2 and label s; owner 0 has the list {1, 2}, owner 1 none.
Samples tiny_samples(const std::vector<std::int32_t>& wanted) {
  Samples samples{.stride = 3};
  for (const std::int32_t s : wanted) {
    samples.cells.insert(samples.cells.end(),
                         {s + 10, s % 2, std::bit_cast<std::int32_t>(static_cast<float>(s))});
  }
  return samples;
}

std::vector<std::int64_t> numbers(const IntegerSpan& values) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < values.size(); ++i) numbers.push_back(values[i]);
  return numbers;
}

class StepInputTest : public testing::Test {
 protected:
  std::vector<std::int64_t> ids(std::size_t replica) const {
    return numbers(std::get<DenseIds>(input_.batches()[replica].features[0]).values);
  }
  std::vector<std::int64_t> splits(std::size_t replica) const {
    return numbers(std::get<RaggedIds>(input_.batches()[replica].features[1]).row_splits);
  }
  std::vector<std::int64_t> values(std::size_t replica) const {
    return numbers(std::get<RaggedIds>(input_.batches()[replica].features[1]).values);
  }
  void fill(const std::vector<std::int32_t>& before, const std::vector<std::int32_t>& wanted) {
    std::vector<std::int32_t> all = before;
    all.insert(all.end(), wanted.begin(), wanted.end());
    const auto first = static_cast<std::int64_t>(before.size());
    input_.fill({tiny_samples(all), first, static_cast<std::int64_t>(wanted.size())}, labels_);
  }
  const IdColumn id_{.name = "id", .cell = 0};
  const IdColumn list_{
      .name = "list", .owner = 1, .lists = {.splits = {0, 2, 2}, .ids = {1, 2}, .longest = 2}};
  StepInput input_{Structure::tuple({Structure(), Structure()}), {&id_, &list_}, 6, 3};
  std::vector<float> labels_ = std::vector<float>(6);
};

TEST_F(StepInputTest, CutsABatchIntoReplicas) {
  fill({3}, {6, 4, 1, 2, 0, 5});
  EXPECT_THAT(labels_, ElementsAre(6, 4, 1, 2, 0, 5));
  EXPECT_THAT(ids(0), ElementsAre(16, 14));
  EXPECT_THAT(ids(2), ElementsAre(10, 15));
  EXPECT_THAT(splits(0), ElementsAre(0, 2, 4));
  EXPECT_THAT(splits(1), ElementsAre(0, 0, 2));
  EXPECT_THAT(values(1), ElementsAre(1, 2));
}

TEST_F(StepInputTest, ASmallBatchLeavesTheLastReplicasEmpty) {
  fill({3}, {6, 4, 1, 2, 0, 5});
  fill({}, {3, 2, 0});
  EXPECT_THAT(ids(0), ElementsAre(13, 12));
  EXPECT_THAT(ids(1), ElementsAre(10));
  EXPECT_THAT(ids(2), IsEmpty());
  EXPECT_THAT(splits(0), ElementsAre(0, 0, 2));
  EXPECT_THAT(splits(1), ElementsAre(0, 2));
  EXPECT_THAT(splits(2), ElementsAre(0));
  EXPECT_THAT(values(2), IsEmpty());
}

}  // namespace
}  // namespace embertable::jobs
