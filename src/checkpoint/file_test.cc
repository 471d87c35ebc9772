#include "checkpoint/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/saved_tables.h"

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

  files.create(root / "a" / "g");
  files.rename(root / "a" / "g", root / "a" / "f");
  EXPECT_EQ(files.list(root / "a"), (std::vector<std::string>{"b", "f"}));
  EXPECT_EQ(files.stat(root / "a" / "f")->bytes, 0);
  EXPECT_EQ(opened->size(), 10);
  EXPECT_THROW(files.rename(root / "a" / "f", root / "a" / "b"), IoError);
  EXPECT_THROW(files.rename(root / "a" / "b", root / "a" / "f"), IoError);

  files.make_directory(root / "c");
  files.exchange(root / "a", root / "c");
  EXPECT_TRUE(files.list(root / "a").empty());
  files.rename(root / "c", root / "d");
  files.sync_directory(root);
  EXPECT_EQ(files.list(root), (std::vector<std::string>{"a", "d"}));
  const auto entered = files.open_directory(root / "d");
  EXPECT_EQ(entered->list(), (std::vector<std::string>{"b", "f"}));
  EXPECT_NE(entered->open("b"), nullptr);
  EXPECT_EQ(entered->open("f"), nullptr);
  EXPECT_EQ(entered->open("none"), nullptr);
  EXPECT_THROW(entered->remove("none"), IoError);
  EXPECT_THROW(files.open_directory(root)->remove("d"), IoError);  // it is not empty
  EXPECT_THROW(files.open_directory(root / "none"), IoError);
  EXPECT_THROW(files.open_directory(root / "d" / "f"), IoError);
  files.make_directory(root / "d" / "b" / "inner");
  EXPECT_EQ(entered->open("b")->list(), (std::vector<std::string>{"inner"}));
  remove_all(files, root / "d");
  EXPECT_EQ(files.list(root), (std::vector<std::string>{"a"}));
  EXPECT_THROW(remove_all(files, root / "d"), IoError);
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

/// A line for everything below a directory: its path, and where a link leads or what a file holds.
std::string tree(const std::filesystem::path& root) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::filesystem::path& path = entry.path();
    std::string line = path.lexically_relative(root);
    if (entry.is_symlink()) {
      line += " -> " + std::filesystem::read_symlink(path).string();
    } else if (entry.is_regular_file()) {
      line += " = " + read_file(local_files(), path, 100);
    }
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A directory outside of what is removed, with files in two levels.
class Links : public LocalDirectory {
 protected:
  void SetUp() override {
    LocalDirectory::SetUp();
    outside = directory / "outside";
    make_directories(local_files(), outside / "inner");
    std::ofstream(outside / "f") << "kept";
    std::ofstream(outside / "inner" / "f") << "kept";
    before = tree(outside);
  }
  void TearDown() override {
    EXPECT_EQ(tree(outside), before);
    LocalDirectory::TearDown();
  }

  std::filesystem::path outside;
  std::string before;
};

TEST_F(Links, AreRemovedAndNotFollowed) {
  for (const char* target : {"f", "inner", ".", "none"}) {
    std::filesystem::create_symlink(outside / target, directory / "link");
    remove_all(local_files(), directory / "link");
    EXPECT_EQ(local_files().list(directory), (std::vector<std::string>{"outside"})) << target;
  }
}

TEST_F(Links, AtAnyDepthAreRemovedAndNotFollowed) {
  const std::filesystem::path top = directory / "top";
  for (const char* below : {"", "a", "a/b"}) {
    make_directories(local_files(), top / below);
    for (const char* target : {"f", "inner", ".", "none"})
      std::filesystem::create_symlink(outside / target,
                                      top / below / (std::string("link-") + target));
  }
  std::filesystem::create_symlink("..", top / "a" / "up");
  std::filesystem::create_symlink("itself", top / "itself");
  remove_all(local_files(), top);
  EXPECT_EQ(local_files().list(directory), (std::vector<std::string>{"outside"}));
}

TEST_F(Links, AreNoDirectoriesToEnter) {
  std::filesystem::create_symlink(outside, directory / "link");
  const auto opened = local_files().open_directory(directory);
  EXPECT_EQ(opened->open("link"), nullptr);
  EXPECT_NE(opened->open("outside"), nullptr);
  EXPECT_EQ(local_files().open_directory(directory / "link")->list(),
            (std::vector<std::string>{"f", "inner"}));
}

// The directory is opened, and a link to another takes its name before it is emptied.
TEST_F(Links, ThatTakeADirectorysPlaceAreNotEntered) {
  make_directories(local_files(), directory / "mine" / "inner");
  std::ofstream(directory / "mine" / "f") << "mine";
  const auto opened = local_files().open_directory(directory)->open("mine");
  std::filesystem::rename(directory / "mine", directory / "moved");
  std::filesystem::create_symlink(outside, directory / "mine");
  EXPECT_EQ(opened->list(), (std::vector<std::string>{"f", "inner"}));
  opened->remove("f");
  EXPECT_EQ(tree(directory / "moved"), "inner\n");
}

TEST_F(Links, AreNoLocks) {
  const std::filesystem::path lock = directory / kLockName;
  std::filesystem::create_symlink(outside / "f", lock);
  try {
    local_files().lock(lock);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), lock.string() + ": cannot lock: it is a link");
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
