// The file of a sweep's results.
#include "apps/jobs/sweep/sweep_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

TEST(SweepResults, GiveARunWhatItsIdHas) {
  const TemporaryFiles files;
  const std::string path = files.path("runs.jsonl");
  SweepResults(path).add({.setting = {{"seed", "1"}},
                          .id = "a",
                          .measures = {{"auc", 0.75}},
                          .epoch = 3,
                          .seconds = 0.5,
                          .digest = "d",
                          .warnings = {"a row", "a table"}});
  SweptRun known{.number = 7, .setting = {{"seed", "1e0"}}, .id = "a"}, other{.id = "b"};
  const SweepResults results(path);
  EXPECT_TRUE(results.take(known));
  EXPECT_EQ(known.number, 7);
  EXPECT_EQ(known.setting, (SweepSetting{{"seed", "1e0"}}));
  EXPECT_EQ(known.id, "a");
  EXPECT_EQ(known.measures.at(0).value, 0.75);
  EXPECT_EQ(known.epoch, 3);
  EXPECT_EQ(known.digest, "d");
  EXPECT_THAT(known.warnings, testing::ElementsAre("a row", "a table"));
  EXPECT_FALSE(results.take(other));
  EXPECT_EQ(other.id, "b");
}

TEST(SweepResults, SayWhyALineCannotBeWritten) {
  const TemporaryFiles files;
  EXPECT_EQ(
      refusal<IoError>(files.path(), [&] { SweepResults(files.path("no/runs.jsonl")).add({}); }),
      "'no/runs.jsonl': cannot write: No such file or directory");
}

}  // namespace
}  // namespace embertable::jobs
