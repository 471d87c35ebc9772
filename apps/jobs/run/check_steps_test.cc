#include "apps/jobs/run/check_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "embertable/errors.h"
#include "testing/tiny_job.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

using testing::HasSubstr;

class CheckSteps : public testing::Test {
 protected:
  CheckSteps() {
    write_tiny_data(files_);
    last_ = train_in(files_, tiny_job(), {.out = out()}).saved;
  }
  std::string out() const { return files_.path("out"); }

  /// Turns the bits of the middle byte of a file; its name.
  std::string damage_rows() const {
    std::filesystem::path file;
    for (const auto& entry : std::filesystem::directory_iterator(last_)) {
      if (entry.path().extension() == ".safetensors") file = std::max(file, entry.path());
    }
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(file) / 2);
    stream.seekg(middle);
    const int byte = stream.get();
    stream.seekp(middle);
    stream.put(static_cast<char>(~byte));
    return file.filename();
  }
  TemporaryFiles files_;
  std::filesystem::path last_;
};

TEST_F(CheckSteps, FindsNothingWrongWithWhatWasSaved) {
  const std::vector<CheckedStep> steps = check_steps(out(), false);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].directory, last_);
  EXPECT_EQ(steps[0].files.front().name, "manifest.json");
  EXPECT_GE(steps[0].files.size(), 1u + 5 + 3);  // tables, tensors, blobs, id maps
  EXPECT_EQ(steps[0].num_damaged(), 0);
  for (const CheckedFile& file : steps[0].files)
    EXPECT_EQ(static_cast<std::uintmax_t>(file.bytes),
              std::filesystem::file_size(last_ / file.name));
}

TEST_F(CheckSteps, NamesFileAndBlock) {
  const std::string name = damage_rows();
  const std::vector<CheckedStep> steps = check_steps(out(), false);
  EXPECT_EQ(steps[0].num_damaged(), 1);
  for (const CheckedFile& file : steps[0].files) {
    if (file.name != name) continue;
    EXPECT_THAT(file.damage, HasSubstr(name));
    EXPECT_THAT(file.damage, HasSubstr("block 0"));
  }
}

TEST_F(CheckSteps, ReadsEveryStepIfAsked) {
  damage_rows();
  const std::vector<CheckedStep> steps = check_steps(out(), true);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].num_damaged(), 0);
  EXPECT_EQ(steps[1].num_damaged(), 1);
  EXPECT_EQ(check_steps(steps[0].directory, false)[0].num_damaged(), 0);
}

TEST_F(CheckSteps, TakesTheHighestStepEvenIfItCannotBeOpened) {
  std::filesystem::resize_file(last_ / "manifest.json", 10);
  const std::vector<CheckedStep> steps = check_steps(out(), false);
  EXPECT_EQ(steps[0].directory, last_);
  ASSERT_EQ(steps[0].files.size(), 1u);
  EXPECT_THAT(steps[0].files[0].damage, HasSubstr("manifest.json"));
  std::filesystem::remove(last_ / "manifest.json");
  EXPECT_EQ(check_steps(out(), false)[0].num_damaged(), 1);
}

TEST_F(CheckSteps, MissesNoFile) {
  const CheckedStep whole = check_steps(out(), false)[0];
  for (const CheckedFile& file : whole.files) {
    if (file.name == "manifest.json") continue;
    std::filesystem::rename(last_ / file.name, last_ / "aside");
    EXPECT_EQ(check_steps(out(), false)[0].num_damaged(), 1) << file.name;
    std::filesystem::rename(last_ / "aside", last_ / file.name);
  }
}

TEST_F(CheckSteps, ReadsTheBestEpochToo) {
  const Job job = tiny_job({"schedule.patience=3", "split.train_on_validation=false"});
  last_ = train_in(files_, job, {.out = files_.path("patient")}).saved;
  damage_rows();
  const std::vector<CheckedStep> steps = check_steps(files_.path("patient"), false);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].num_damaged(), 0);
  EXPECT_EQ(steps[1].directory, last_);
  EXPECT_EQ(steps[1].num_damaged(), 1);
}

TEST_F(CheckSteps, NeedsAStep) {
  EXPECT_THAT(refusal<IoError>(files_.path(), [&] { check_steps(files_.path("none"), false); }),
              "none: cannot open: there is no checkpoint");
}

}  // namespace
}  // namespace embertable::jobs
