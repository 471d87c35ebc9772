#include "checkpoint/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "base/interruption.h"
#include "checkpoint/mapped_file.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/refusal.h"
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

  files.rename(root / "a", root / "d");
  files.sync_directory(root);
  EXPECT_EQ(files.list(root), (std::vector<std::string>{"d"}));
  const auto entered = files.open_directory(root / "d");
  EXPECT_EQ(entered->list(), (std::vector<std::string>{"b", "f"}));
  EXPECT_NE(entered->open("b"), nullptr);
  EXPECT_NE(entered->enter("b"), nullptr);
  EXPECT_EQ(entered->enter("f"), nullptr);
  EXPECT_EQ(entered->open_file("f")->size(), 0);
  EXPECT_EQ(entered->open_file("b"), nullptr);
  EXPECT_EQ(entered->open_file("none"), nullptr);
  entered->create("g")->write(bytes_of(text));
  EXPECT_THROW(entered->create("g"), IoError);
  EXPECT_THROW(entered->create("b"), IoError);
  entered->make_directory("h");
  EXPECT_THROW(entered->make_directory("g"), IoError);
  EXPECT_THROW(entered->make_directory("h"), IoError);
  entered->rename("g", "i");
  EXPECT_THROW(entered->rename("g", "j"), IoError);
  entered->sync();
  EXPECT_EQ(entered->open_file("i")->size(), 10);
  entered->remove("h");
  entered->remove("i");
  EXPECT_EQ(entered->open("f"), nullptr);
  EXPECT_EQ(entered->open("none"), nullptr);
  EXPECT_THROW(entered->remove("none"), IoError);
  EXPECT_THROW(files.open_directory(root)->remove("d"), IoError);  // it is not empty
  EXPECT_THROW(files.open_directory(root / "none"), IoError);
  EXPECT_THROW(files.open_directory(root / "d" / "f"), IoError);
  files.make_directory(root / "d" / "b" / "inner");
  EXPECT_EQ(entered->open("b")->list(), (std::vector<std::string>{"inner"}));
  remove_all(*files.open_directory(root), "d");
  EXPECT_TRUE(files.list(root).empty());
  EXPECT_THROW(remove_all(*files.open_directory(root), "d"), IoError);
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
    remove_all(*local_files().open_directory(directory), "link");
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
  remove_all(*local_files().open_directory(directory), "top");
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

// Everything that is written goes to the directory that was opened.
TEST_F(Links, ThatTakeADirectorysPlaceAreNotWrittenTo) {
  make_directories(local_files(), directory / "mine");
  const auto opened = local_files().open_directory(directory)->open("mine");
  std::filesystem::rename(directory / "mine", directory / "moved");
  std::filesystem::create_symlink(outside, directory / "mine");
  const std::string text = "mine";
  opened->create("f")->write(bytes_of(text));
  opened->create("g");
  opened->rename("g", "h");
  opened->make_directory("d");
  opened->sync();
  opened->lock(kLockName).reset();
  opened->wait_for_lock(".turn").reset();
  EXPECT_EQ(opened->open_file("f")->size(), 4);
  EXPECT_EQ(opened->list(), (std::vector<std::string>{".lock", "d", "f", "h"}));
  EXPECT_EQ(local_files().list(directory / "moved"), opened->list());
}

TEST_F(Links, AreNoNamesForNewFiles) {
  const auto opened = local_files().open_directory(directory);
  for (const char* target : {"f", "inner", "none"}) {
    std::filesystem::create_symlink(outside / target, directory / "link");
    EXPECT_THROW(opened->create("link"), IoError) << target;
    EXPECT_THROW(opened->make_directory("link"), IoError) << target;
    EXPECT_THROW(local_files().create(directory / "link"), IoError) << target;
    EXPECT_THROW(opened->lock("link"), IoError) << target;
    EXPECT_THROW(opened->wait_for_lock("link"), IoError) << target;
    opened->rename("link", "renamed");
    EXPECT_TRUE(std::filesystem::is_symlink(directory / "renamed")) << target;
    opened->remove("renamed");
  }
}

TEST_F(Links, AreFollowedToRead) {
  const auto opened = local_files().open_directory(directory);
  std::filesystem::create_symlink(outside / "f", directory / "file");
  std::filesystem::create_symlink(outside / "inner", directory / "folder");
  std::filesystem::create_symlink(outside / "none", directory / "none");
  EXPECT_EQ(read_file(*opened->open_file("file"), "file", 100), "kept");
  EXPECT_EQ(opened->open_file("folder"), nullptr);
  EXPECT_EQ(opened->enter("folder")->list(), std::vector<std::string>{"f"});
  EXPECT_EQ(opened->enter("file"), nullptr);
  EXPECT_EQ(opened->open_file("none"), nullptr);
  EXPECT_EQ(opened->enter("none"), nullptr);
}

TEST_F(Links, AreNoLocks) {
  const std::filesystem::path lock = directory / kLockName;
  std::filesystem::create_symlink(outside / "f", lock);
  try {
    local_files().open_directory(directory)->lock(kLockName);
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), lock.string() + ": cannot lock: it is a link");
  }
}

TEST_F(LocalDirectory, ARemovedLockFileDoesNotGiveTwoOwners) {
  const auto opened = local_files().open_directory(directory);
  auto held = opened->lock(kLockName);
  std::filesystem::remove(directory / kLockName);
  EXPECT_THROW(opened->lock(kLockName), StateError);
  EXPECT_THROW(local_files().open_directory(directory)->lock(kLockName), StateError);
  held.reset();
  EXPECT_NO_THROW(opened->lock(kLockName));
}

TEST_F(LocalDirectory, AWaitForALockCanBeInterrupted) {
  struct Stop {};
  const auto opened = local_files().open_directory(directory);
  const auto held = opened->wait_for_lock(".turn");
  const Interruption stops([] { throw Stop(); });
  EXPECT_THROW(opened->wait_for_lock(".turn"), Stop);
  EXPECT_EQ(local_files().list(directory), std::vector<std::string>{".turn"});
}

// Each removes the file of the lock as it goes, while others wait for that very file.
TEST_F(LocalDirectory, OneAtATimeHasAWaitedForLock) {
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto opened = local_files().open_directory(directory);
      for (int i = 0; i < 200; ++i) {
        const auto turn = opened->wait_for_lock(".turn");
        most = std::max(most.load(), ++inside);
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(local_files().list(directory), std::vector<std::string>());
}

TEST_F(LocalDirectory, SeveralMayMakeTheSameDirectories) {
  for (int i = 0; i < 100; ++i) {
    const std::filesystem::path path = directory / std::to_string(i) / "a" / "b";
    std::vector<std::thread> threads;
    std::atomic<int> failed = 0;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        try {
          make_directories(local_files(), path);
        } catch (const IoError&) {
          ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0);
  }
}

TEST(LocalFiles, DirectoriesThatCannotBeFlushedNeedNot) {
  EXPECT_NO_THROW(local_files().open_directory("/proc")->sync());
}

TEST_F(LocalDirectory, ALinkThatLeadsNowhereIsNoPlaceForADirectory) {
  std::filesystem::create_symlink("none", directory / "link");
  try {
    make_directories(local_files(), directory / "link" / "run");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.what(), (directory / "link").string() +
                                ": cannot make directory: it is a link that leads nowhere");
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

// Reading memory that a file no longer has would end the process.
TEST_F(LocalDirectory, AMappedBlockThatWasCutOffIsDamaged) {
  Manifest manifest = test_manifest();
  manifest.tables = {{.name = "video", .vocabulary_size = 200'000, .dim = 4, .combiner = "sum"}};
  manifest.features.clear();
  const auto step = save(local_files(), directory / "run", manifest, test_shards(manifest));
  const Reader reader(local_files(), step);
  const FileRecord& record = reader.manifest().files.at(0);
  const std::filesystem::path path = step / record.name;
  const MappedFile file(*reader.open(record), path, record);
  file.check(0, 1);
  ASSERT_TRUE(std::filesystem::file_size(path) > 3u << 20);
  const std::unique_ptr<FileMap> map = reader.open(record)->map();
  std::filesystem::resize_file(path, (1 << 20) + 4096);
  if (map->fetch(2 << 20, 1)) GTEST_SKIP() << "the kernel does not tell: from Linux 5.14 on";
  EXPECT_EQ(refusal<DataLoss>([&] { file.check(2 << 20, 1); }),
            path.string() + ": cannot read: block 2 is away: the file has been cut short");
  EXPECT_THROW(file.check(1 << 20, 1), DataLoss);
  EXPECT_NO_THROW(file.check(0, 1 << 20));
}

TEST_F(LocalDirectory, HoldsACheckpointThatTheCallerReads) {
  const Manifest manifest = test_manifest(3, Sharding::kMod);
  const auto step =
      save(local_files(), directory / "run", manifest, test_shards(manifest), test_caller());
  EXPECT_EQ(find_checkpoint(directory / "run"), step);
  EXPECT_EQ(find_checkpoint(step), step);
  EXPECT_EQ(read_saved_state(step).step, 7);
  EXPECT_EQ(read_saved_state(step).caller, test_caller());
  EXPECT_THROW(save(local_files(), directory / "run", manifest, test_shards(manifest, 1)),
               StateError);
  EXPECT_EQ(local_files().list(directory / "run"),
            (std::vector<std::string>{kLockName, step.filename()}));
  EXPECT_EQ(digest_checkpoint(directory / "run"), digest(test_digest_tables(manifest)));
  EXPECT_NO_THROW(verify_checkpoint(step));
  std::ofstream(step / "blobs.safetensors", std::ios::app) << "x";
  EXPECT_THROW(verify_checkpoint(step), DataLoss);
}

}  // namespace
}  // namespace embertable::checkpoint
