#include "apps/jobs/spec/measures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace embertable::jobs {
namespace {

TEST(Measures, AreFoundByName) {
  const Measures measures = {{"auc", 0.75}, {"logloss", 0.5}};
  EXPECT_EQ(value_of(measures, "logloss"), 0.5);
  EXPECT_TRUE(std::isnan(value_of(measures, "rmse")));
  const Measures two = select(measures, {"logloss", "auc"});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "logloss");
  EXPECT_EQ(two[1].value, 0.75);
}

TEST(Measures, KnowWhichWayIsBetter) {
  for (const char* name : {"rmse", "mae", "logloss", "loss"}) {
    EXPECT_TRUE(is_better(name, 1, 2)) << name;
    EXPECT_FALSE(is_better(name, 2, 2)) << name;
  }
  for (const char* name : {"auc", "recall@20", "ndcg@10", "hr@10", "spearman"}) {
    EXPECT_TRUE(is_better(name, 2, 1)) << name;
    EXPECT_FALSE(is_better(name, 1, 1)) << name;
  }
  EXPECT_FALSE(is_better("rmse", std::nan(""), 1));
  EXPECT_FALSE(is_better("auc", std::nan(""), 1));
}

}  // namespace
}  // namespace embertable::jobs
