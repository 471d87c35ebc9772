#include "apps/jobs/run/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "apps/convert/saved_model.h"
#include "apps/jobs/data/data_set.h"
#include "apps/jobs/run/neighbors.h"
#include "apps/jobs/run/trainer.h"
#include "apps/jobs/text/broken_record.h"
#include "checkpoint/reader.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

class Train : public testing::Test {
 protected:
  Train() { write_tiny_data(files_); }
  TrainReport run(const std::vector<Change>& changes = {}, std::int32_t threads = 1,
                  const std::string& out = "") {
    return train_in(files_, tiny_job(changes), {.out = out, .threads = threads});
  }
  TemporaryFiles files_;
};

TEST_F(Train, LearnsAPatternThatBiasesCannotTell) {
  const TrainReport report =
      run({"schedule.epochs=150", "optimizer.learning_rate=0.1", "optimizer.decay=0.99"});
  EXPECT_LT(value_of(report.measures, "rmse"), 1.0);  // a constant has 1.41
  EXPECT_LE(value_of(report.measures, "mae"), value_of(report.measures, "rmse"));
}

TEST_F(Train, TakesAStepForEachBatchAndTheRest) {
  const Job job = tiny_job();
  const DataSet data = read_data(tiny_records(), {.root = files_.path()});
  const std::int64_t training = data.select({Part::kTraining, Part::kValidation}).size();
  EXPECT_NE(training % 24, 0);
  EXPECT_EQ(run().steps, 2 * ((training + 23) / 24));
}

TEST_F(Train, GivesTheSameBitsWhereverItRuns) {
  for (const std::string replicas : {"1", "2", "4"}) {
    const std::vector<Change> same = {"strategy.replicas=" + replicas};
    const auto with = [&](std::vector<Change> changes) {
      changes.push_back(same.front());
      return changes;
    };
    const TrainReport report = run(same);
    EXPECT_EQ(run(same, 3).digest, report.digest);
    EXPECT_EQ(run(with({"schedule.look_ahead=0"})).digest, report.digest);
    EXPECT_EQ(run(with({"schedule.look_ahead=9"}), 2).digest, report.digest);
    EXPECT_EQ(run(with({"engine.bucket_bytes=64", "engine.inline_floats=0"}), 2).digest,
              report.digest);
    if (replicas != "1") {
      const TrainReport on_two = run(with({"strategy.hosts=2"}), 2);
      EXPECT_EQ(on_two.digest, report.digest);
      EXPECT_EQ(value_of(on_two.measures, "rmse"), value_of(report.measures, "rmse"));
    }
    if (replicas == "4") {
      EXPECT_EQ(run(with({"strategy.hosts=4", "strategy.sharding=mod"}), 2).digest, report.digest);
    }
  }
}

TEST_F(Train, ATrainerThatWasStoppedTrainsNoMore) {
  const Job job = tiny_job();
  const std::unique_ptr<Model> model = job.model->make(job, {.root = files_.path()});
  Trainer trainer(job, *model, make_inline_executor());
  const auto train = [&](bool goes_on) {
    trainer.train(
        model->begin_epoch(1), {}, [](std::int64_t) { return 0.1; },
        [&](const Trainer::Position&) { return goes_on; });
  };
  train(true);
  train(true);
  train(false);
  EXPECT_EQ(refusal<StateError>("", [&] { train(true); }),
            "a trainer must not train again after it was stopped or failed");
}

TEST_F(Train, DependsOnTheSeed) {
  EXPECT_EQ(run({"seed=5"}).digest, run({"seed=5"}).digest);
  EXPECT_NE(run({"seed=5"}).digest, run({"seed=6"}).digest);
}

TEST_F(Train, TakesEveryOptimizer) {
  for (const std::string& rule : optimizer_rules()) {
    if (rule == "assign" || rule == "frequency_estimator") continue;  // rows are no parameters
    const TrainReport report = run({"optimizer.rule=" + rule, "optimizer.learning_rate=0.01"});
    EXPECT_TRUE(value_of(report.measures, "rmse") > 0 && value_of(report.measures, "rmse") < 4)
        << rule;
  }
}

TEST_F(Train, MeasuresTheValidationPartWhereItDoesNotTrain) {
  struct Observer : TrainObserver {
    void started(const StartReport& start) override { part = start.measured_part; }
    void finished_epoch(const EpochReport& epoch) override {
      validated += epoch.validation.empty() ? 0 : 1;
    }
    std::string part;
    int validated = 0;
  };
  Observer all, tuning;
  train_in(files_, tiny_job(), {}, all);
  const TrainReport report =
      train_in(files_, tiny_job({"split.train_on_validation=false"}), {}, tuning);
  EXPECT_EQ(all.part, "test");
  EXPECT_EQ(all.validated, 0);
  EXPECT_EQ(tuning.part, "validation");
  EXPECT_EQ(tuning.validated, 2);
  EXPECT_EQ(report.measured_part, "validation");
}

TEST_F(Train, SavesTablesIdsAndNames) {
  const std::string out = files_.path("out");
  const TrainReport report = run({}, 1, out);
  EXPECT_EQ(digest_checkpoint(out), report.digest);
  const SavedState state = read_saved_state(out);
  EXPECT_EQ(state.step, report.steps);
  EXPECT_EQ(parse_job(state.caller.blobs.at("job.toml"), "job.toml").schedule.batch, 24);

  const SavedTableRows items(out, "item");
  EXPECT_EQ(items.rows(), 10);
  EXPECT_EQ(items.dim(), 5);
  EXPECT_EQ(items.row_of_key("13"), 2);
  EXPECT_EQ(items.row_of_name("no. 4"), 4);
  EXPECT_EQ(items.display_name(4), "Item, No. 4");
  EXPECT_EQ(items.display_name(9), "");
  EXPECT_EQ(SavedTableRows(out, "tag").row_of_key("t3"), 3);
  EXPECT_EQ(SavedTableRows(out, "tag").key(1), "t1");
}

TEST_F(Train, BrokenRecordsOfNamesAreLeftOutToo) {
  files_.write("names.csv", "item,name\n7,Seven\nx,None\n13,Thirteen,\n10,Ten\n");
  struct Start final : TrainObserver {
    void started(const StartReport& start) override { left_out = start.left_out.total(); }
    std::int64_t left_out = 0;
  } start;
  const auto run_with = [&](std::int64_t skip_bad, const std::string& out) {
    train_in(files_, tiny_job(), {.skip_bad = skip_bad, .out = files_.path(out)}, start);
    return SavedTableRows(files_.path(out), "item").display_name(1);
  };
  EXPECT_EQ(run_with(2, "out"), "Ten");
  EXPECT_EQ(start.left_out, 2);
  EXPECT_TRUE(std::filesystem::exists(files_.path("out.cache/names.item.bin")));
  EXPECT_EQ(refusal<BrokenRecord>(files_.path(), [&] { run_with(1, "other"); }),
            "names.csv:4:13: a record must have 2 fields as the first line has, got 3; 1 broken "
            "before it is left out, and no more may be");
}

TEST_F(Train, FindsTheNearestRows) {
  const std::string out = files_.path("out");
  run({"schedule.epochs=150", "optimizer.learning_rate=0.1", "optimizer.decay=0.99"}, 1, out);
  // Items i and i + 5 are rated alike.
  const SavedTableRows items(out, "item");
  const std::vector<Neighbor> neighbors = nearest_rows(items, 2, 3);
  ASSERT_EQ(neighbors.size(), 3u);
  EXPECT_EQ(neighbors[0].row, 7);
  EXPECT_GT(neighbors[0].cosine, neighbors[1].cosine);
  EXPECT_EQ(nearest_rows(items, 2, 100).size(), 9u);
}

TEST_F(Train, AddsAnItemsSidesToItsVector) {
  const std::string out = files_.path("out");
  run({}, 1, out);
  const SavedTableRows items(out, "item"), tags(out, "tag");
  // Item 1 has tags 0 and 1, item 9 has none.
  const DenseTensor vectors = read_saved_state(out).caller.tensors.at("vectors.item");
  EXPECT_EQ(vectors.shape, (std::vector<std::int64_t>{10, 5}));
  const checkpoint::Reader reader(checkpoint::local_files(), out);
  std::vector<float> saved(50);
  reader.variable("item").read(0, saved);
  for (int k = 0; k < 5; ++k) {
    EXPECT_FLOAT_EQ(items.row(1)[k], saved[5 + k] + (tags.row(0)[k] + tags.row(1)[k]) / 2);
    EXPECT_EQ(items.row(9)[k], saved[45 + k]);
  }
}

TEST_F(Train, ANameOfSeveralRowsIsRefused) {
  files_.write("names.csv", "item,name\n7,Same\n13,same\n10,Same too\n");
  const std::string out = files_.path("out");
  run({}, 1, out);
  const SavedTableRows items(out, "item");
  EXPECT_EQ(items.row_of_name("same TOO"), items.row_of_key("10"));
  EXPECT_THAT(refusal<ValueError>("", [&] { items.row_of_name("SAME"); }),
              testing::AllOf(testing::StartsWith("table 'item': a name must be of one row, got "
                                                 "'SAME', which 2 rows have:\n  key "),
                             testing::HasSubstr("Same"), testing::HasSubstr("same"),
                             testing::Not(testing::HasSubstr("too"))));
}

TEST_F(Train, RefusesWhatItCannotDo) {
  const std::string out = files_.path("out");
  run({}, 1, out);
  EXPECT_EQ(refusal<KeyError>(files_.path(), [&] { SavedTableRows(out, "itme"); }).substr(0, 4),
            "'out");
  const SavedTableRows items(out, "item");
  EXPECT_EQ(refusal<KeyError>("", [&] { items.row_of_key("8"); }), "table 'item' has no key '8'");
  EXPECT_EQ(refusal<ValueError>("", [&] { items.row_of_key("x"); }),
            "table 'item': a key must be an integer, got 'x'");
  EXPECT_EQ(refusal<KeyError>("", [&] { items.row_of_name("x"); }),
            "table 'item' has no name that contains 'x'");
  EXPECT_THAT(refusal<ValueError>("", [&] { items.row_of_name("item"); }),
              testing::StartsWith("table 'item': a name must be of one row, got 'item', which 9 "
                                  "names contain:\n  key 7 "));
  EXPECT_EQ(refusal<ValueError>("", [&] { nearest_rows(SavedTableRows(out, "item_bias"), 0, 3); }),
            "table 'item_bias': dim must be at least 2 to have neighbours, got 1");
}

}  // namespace
}  // namespace embertable::jobs
