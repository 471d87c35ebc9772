// Which epoch a run with schedule.patience takes for the best one.
#include "apps/jobs/run/best_epoch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace embertable::jobs {
namespace {

const double kNan = std::nan("");

/// Returns the epochs that are the best when they end, from 1.
std::vector<std::int32_t> best_epochs(const std::string& metric,
                                      const std::vector<double>& values) {
  Progress progress;
  std::vector<std::int32_t> best;
  for (const double value : values) {
    ++progress.epochs;
    if (!is_new_best({metric, value}, progress)) continue;
    best.push_back(progress.epochs);
    progress.best_epoch = progress.epochs;
    progress.best = value;
  }
  return best;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IsNewBest, LowerErrorsAndHigherRatesAreBetter) {
  EXPECT_THAT(best_epochs("rmse", {0.9, 0.8, 0.85, 0.8, 0.7}), ElementsAre(1, 2, 5));
  EXPECT_THAT(best_epochs("hr@10", {0.1, 0.3, 0.2, 0.3, 0.4}), ElementsAre(1, 2, 5));
}

TEST(IsNewBest, NanIsNeverBetter) {
  EXPECT_THAT(best_epochs("rmse", {kNan, kNan, kNan}), IsEmpty());
  EXPECT_THAT(best_epochs("auc", {kNan, 0.6, kNan, 0.5, 0.7}), ElementsAre(2, 5));
  EXPECT_THAT(best_epochs("rmse", {0.9, kNan, 0.8}), ElementsAre(1, 3));
}

TEST(IsNewBest, AnyNumberIsBetterThanNone) {
  Progress resumed;
  resumed.epochs = 4;
  resumed.best_epoch = 3;
  resumed.best = kNan;
  EXPECT_TRUE(is_new_best({"rmse", 1e30}, resumed));
  EXPECT_FALSE(is_new_best({"rmse", kNan}, resumed));
}

}  // namespace
}  // namespace embertable::jobs
