#include "apps/jobs/models/pairwise.h"

#include <gtest/gtest.h>

#include <set>

#include "embertable/errors.h"
#include "testing/tiny_histories.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

class PairwiseModel : public testing::Test {
 protected:
  PairwiseModel() { write_tiny_histories(files_); }
  TrainReport run(const std::vector<Change>& changes) const {
    return train_in(files_, tiny_pairs(changes), {.threads = 2});
  }
  TemporaryFiles files_;
};

TEST_F(PairwiseModel, LearnsWhoBelongsTogether) {
  const TrainReport report = run({"schedule.epochs=60"});
  // The 10 best of the 33 or more items that a user lacks hold the few that are left of the user's
  // group.
  EXPECT_GT(value_of(report.measures, "recall@10"), 0.98);
  EXPECT_LT(value_of(run({"schedule.epochs=0"}).measures, "recall@10"), 0.5);
}

TEST_F(PairwiseModel, PopularityIsItsBaseline) {
  const Job job = tiny_pairs();
  const auto model = job.model->make(job, {.root = files_.path()});
  const std::vector<Baseline> baselines = model->baselines(Part::kTest);
  ASSERT_EQ(baselines.size(), 1u);
  EXPECT_EQ(baselines[0].name, "popularity");
  const double recall = value_of(baselines[0].measures, "recall@10");
  EXPECT_GT(recall, 0.02);
  EXPECT_LT(recall, 0.6);
}

TEST_F(PairwiseModel, ASampleIsAPairOfTheDataAndItemsThatTheUserLacks) {
  const Job job = tiny_pairs({"split.train_on_validation=false"});
  const auto model = job.model->make(job, {.root = files_.path()});
  const std::int64_t count = model->begin_epoch(1);
  EXPECT_EQ(count, model->samples(Part::kTraining));
  EXPECT_EQ(count + model->samples(Part::kValidation) + model->samples(Part::kTest), 80 * 7);
  std::vector<StepIds> ids(2), part(2);
  model->fill(0, count, ids);
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t s = 0; s < static_cast<std::size_t>(count); ++s)
    EXPECT_TRUE(pairs.emplace(ids[0].ids[s], ids[1].ids[3 * s]).second);
  for (std::size_t s = 0; s < static_cast<std::size_t>(count); ++s) {
    for (const std::size_t k : {1u, 2u})
      EXPECT_FALSE(pairs.contains({ids[0].ids[s], ids[1].ids[3 * s + k]}));
  }
  model->fill(100, 20, part);
  EXPECT_EQ(part[1].ids,
            std::vector<std::int32_t>(ids[1].ids.begin() + 300, ids[1].ids.begin() + 360));
  const std::vector<std::int32_t> first = ids[1].ids;
  EXPECT_EQ(model->begin_epoch(2), count);
  model->fill(0, count, ids);
  EXPECT_NE(ids[1].ids, first);
}

TEST_F(PairwiseModel, RegularizationKeepsRowsSmall) {
  EXPECT_NE(run({"model.regularization=0"}).digest, run({}).digest);
  EXPECT_NE(run({"model.avoid_known=false"}).digest, run({}).digest);
}

std::string refused_pairs(const std::vector<Change>& changes) {
  return refusal<ValueError>("", [&] { tiny_pairs(changes); });
}

TEST(PairwiseSpec, SaysWhichKeyBreaksWhichRule) {
  EXPECT_EQ(refused_pairs({"model.user=item"}),
            "model.user=item: model.user must be one of user, got \"item\"");
  EXPECT_EQ(refused_pairs({"tables.item.dim=8"}),
            "pairs.toml:17: model.item must name a table of dim 9, got \"item\" of dim 8");
  EXPECT_EQ(refused_pairs({"model.regularization=-1"}),
            "model.regularization=-1: model.regularization must be at least 0, got -1");
  EXPECT_EQ(refused_pairs({"metrics=[\"precision@3\"]"}),
            "metrics=[\"precision@3\"]: metrics must be a list of recall@K, ndcg@K and "
            "hr@K, with K from 1 to 10000, got [ 'precision@3' ]");
}

}  // namespace
}  // namespace embertable::jobs
