#include "apps/jobs/run/given_activations.h"

#include <gtest/gtest.h>

#include <utility>

#include "apps/jobs/spec/state_tensors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using F = std::vector<float>;

/// Two samples of a feature with one row each, and of one with two.
std::map<std::string, DenseTensor> two_samples() {
  return {{"user", saved_tensor(F{1, 2, 3, 4}, {2, 2})},
          {"tags", saved_tensor(F{5, 6, 7, 8}, {4, 1})}};
}

GivenActivations given(std::map<std::string, DenseTensor> activations) {
  return {std::move(activations), {{"user", 1, 2}, {"tags", 2, 1}}, "/run"};
}

std::string refused(std::map<std::string, DenseTensor> activations) {
  return refusal<DataLoss>("", [&] { given(std::move(activations)); });
}

TEST(GivenActivations, AreCopiedOnce) {
  GivenActivations two = given(two_samples());
  EXPECT_FALSE(two.empty());
  std::vector<F> rows = {F(6, 9), F(6, 9)};
  two.take(2, rows);
  EXPECT_EQ(rows, (std::vector<F>{{1, 2, 3, 4, 9, 9}, {5, 6, 7, 8, 9, 9}}));
  EXPECT_TRUE(two.empty());
}

TEST(GivenActivations, MayBeNone) {
  EXPECT_TRUE(GivenActivations().empty());
  EXPECT_TRUE(given({}).empty());
}

TEST(GivenActivations, OfAnotherBatchAreRefusedAndKept) {
  GivenActivations two = given(two_samples());
  std::vector<F> rows = {F(6, 9), F(6, 9)};
  EXPECT_EQ(refusal<DataLoss>("", [&] { two.take(3, rows); }),
            "'/run': tensor 'looked_up.user' must be F32 [3, 2], got F32 [2, 2]");
  EXPECT_EQ(rows, std::vector<F>(2, F(6, 9)));
  EXPECT_FALSE(two.empty());
}

TEST(GivenActivations, AreOneForEachFeature) {
  auto activations = two_samples();
  activations["tags"] = saved_tensor(F{5, 6, 7, 8}, {2, 2});
  EXPECT_EQ(refused(activations),
            "'/run': tensor 'looked_up.tags' must be F32 [2, 1], got F32 [2, 2]");
  activations["tags"] = saved_tensor(std::vector<double>{5}, {1, 1});
  EXPECT_EQ(refused(activations),
            "'/run': tensor 'looked_up.tags' must be F32 [1, 1], got F64 [1, 1]");
  activations.erase("tags");
  EXPECT_EQ(refused(activations),
            "'/run': the run must have the tensor 'looked_up.tags', got none");
  activations = two_samples();
  activations["x"] = saved_tensor(F{5}, {1, 1});
  EXPECT_EQ(refused(activations), "'/run': the run must have activations of 2 features, got 3");
}

}  // namespace
}  // namespace embertable::jobs
