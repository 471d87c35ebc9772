#include "checkpoint/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "checkpoint/memory_files.h"
#include "checkpoint/test_tables.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {
namespace {

/// A directory of the operating system's, empty and removed afterwards.
class LocalDirectory : public testing::Test {
 protected:
  void SetUp() override {
    directory = std::filesystem::temp_directory_path() /
                ("embertable_checkpoint_test-" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory);
    std::filesystem::create_directory(directory);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  std::filesystem::path directory;
};

/// What every file system must do, in memory or not.
void exercise(FileSystem& files, const std::filesystem::path& root) {
  make_directories(files, root / "a" / "b" / "");
  const auto file = files.create(root / "a" / "f");
  const std::string text = "0123456789";
  file->write(bytes_of(text));
  file->write({});
  file->sync();
  EXPECT_EQ(files.stat(root / "a" / "f")->bytes, 10);
  EXPECT_FALSE(files.stat(root / "a" / "f")->directory);
  EXPECT_TRUE(files.stat(root / "a")->directory);
  EXPECT_FALSE(files.stat(root / "a" / "none"));
  EXPECT_EQ(files.list(root / "a"), (std::vector<std::string>{"b", "f"}));

  std::string part(4, '-');
  const auto opened = files.open(root / "a" / "f");
  EXPECT_EQ(opened->size(), 10);
  EXPECT_EQ(opened->read(8, std::as_writable_bytes(std::span(part))), 2u);
  EXPECT_EQ(part, "89--");
  EXPECT_EQ(read_file(files, root / "a" / "f", 10), text);
  EXPECT_THROW(read_file(files, root / "a" / "f", 9), DataLoss);

  EXPECT_THROW(files.create(root / "a" / "f"), IoError);
  EXPECT_THROW(files.open(root / "none"), IoError);
  EXPECT_THROW(files.make_directory(root / "a"), IoError);
  EXPECT_THROW(files.remove(root / "a"), IoError);
  EXPECT_THROW(files.list(root / "none"), IoError);
  EXPECT_THROW(files.sync_directory(root / "none"), IoError);

  files.make_directory(root / "c");
  files.exchange(root / "a", root / "c");
  EXPECT_TRUE(files.list(root / "a").empty());
  files.rename(root / "c", root / "d");
  files.sync_directory(root);
  EXPECT_EQ(files.list(root), (std::vector<std::string>{"a", "d"}));
  remove_all(files, root / "d");
  EXPECT_EQ(files.list(root), (std::vector<std::string>{"a"}));
}

TEST_F(LocalDirectory, LocalFilesDoWhatIsAsked) { exercise(local_files(), directory); }

TEST_F(LocalDirectory, APipeIsRefusedInsteadOfWaitedFor) {
  const std::filesystem::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    local_files().open(pipe);
    ADD_FAILURE() << "opened";
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), pipe.string() + ": cannot open: it is no regular file");
  }
}

TEST(MemoryFiles, DoWhatIsAsked) {
  MemoryFiles files;
  files.make_directory("/root");
  exercise(files, "/root");
}

TEST(MemoryFiles, LosePowerAsDisksDo) {
  for (const auto loss : {MemoryFiles::Loss::kUnsynced, MemoryFiles::Loss::kContents}) {
    MemoryFiles files;
    const std::string text = "text";
    files.create("/synced")->write(bytes_of(text));
    const auto file = files.create("/named");
    file->write(bytes_of(text));
    file->sync();
    files.sync_directory("/");
    files.create("/late")->write(bytes_of(text));
    files.lose_power(loss);
    EXPECT_EQ(*files.contents().at("/named"), "text");
    EXPECT_EQ(*files.contents().at("/synced"), "");
    EXPECT_EQ(files.stat("/late").has_value(), loss == MemoryFiles::Loss::kContents);
  }
}

TEST_F(LocalDirectory, ErrorsNamePathOperationAndCause) {
  try {
    local_files().open(directory / "none");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(),
              (directory / "none").string() + ": cannot open: No such file or directory");
  }
}

TEST_F(LocalDirectory, HoldsACheckpointThatTheCallerReads) {
  const Manifest manifest = test_manifest(3, Sharding::kMod);
  const auto step =
      save(local_files(), directory / "run", manifest, test_shards(manifest), test_caller());
  EXPECT_EQ(find_checkpoint(directory / "run"), step);
  EXPECT_EQ(find_checkpoint(step), step);
  EXPECT_EQ(read_saved_state(step).step, 7);
  EXPECT_EQ(read_saved_state(step).caller, test_caller());
  EXPECT_EQ(digest_checkpoint(directory / "run"), digest(test_digest_tables(manifest)));
  EXPECT_NO_THROW(verify_checkpoint(step));
  std::ofstream(step / "blobs.safetensors", std::ios::app) << "x";
  EXPECT_THROW(verify_checkpoint(step), DataLoss);

  save(local_files(), directory / "run", manifest, test_shards(manifest, 1), {}, {},
       IfSaved::kReplace);
  EXPECT_EQ(digest_checkpoint(directory / "run"), digest(test_digest_tables(manifest, 1)));
  EXPECT_EQ(local_files().list(directory / "run"),
            (std::vector<std::string>{kLockName, step.filename()}));
}

}  // namespace
}  // namespace embertable::checkpoint
