// A checkpoint takes the place of another under one prefix, and is stopped at every operation.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_files.h"
#include "testing/bundles.h"
#include "testing/memory_files.h"
#include "testing/temporary_directory.h"

namespace embertable::formats {
namespace {

using checkpoint::FileSystem;
using checkpoint::MemoryFiles;
using Fault = MemoryFiles::Fault;
using Loss = MemoryFiles::Loss;

constexpr const char* kPrefix = "/c";
constexpr float kOld = 1, kNew = 2;

void write_one(FileSystem& files, const std::filesystem::path& prefix, float value) {
  TensorBundleWriter writer(files, prefix);
  add_filled(writer, "x", value);
  writer.finish();
}

const std::vector<std::filesystem::path>& parts() {
  static const std::vector parts = {part_prefix(kPrefix, 0, 2), part_prefix(kPrefix, 1, 2)};
  return parts;
}

void write_parts_of(FileSystem& files, float value) {
  for (const char* key : {"y", "z"}) {
    TensorBundleWriter writer(files, parts()[*key == 'z']);
    add_filled(writer, key, value);
    writer.finish();
  }
}

/// What is there before a checkpoint is written, and how many data files that one has.
struct Overwrite {
  const char* name;
  std::int32_t old_data_files;
  std::int32_t new_data_files;

  /// True if an old data file has the name of a new one.
  bool shares_names() const { return old_data_files == new_data_files; }

  void put_before(MemoryFiles& files) const {
    if (old_data_files == 1) write_one(files, kPrefix, kOld);
    if (old_data_files == 2) {
      write_parts_of(files, kOld);
      merge_tensor_bundles(files, parts(), kPrefix);
    }
    if (new_data_files == 2) write_parts_of(files, kNew);
    for (const char* directory : {"/", "/c_temp"})
      if (files.stat(directory)) files.sync_directory(directory);
  }

  void attempt(FileSystem& files) const {
    if (new_data_files == 1) return write_one(files, kPrefix, kNew);
    merge_tensor_bundles(files, parts(), kPrefix);
  }
};

std::ostream& operator<<(std::ostream& out, const Overwrite& overwrite) {
  return out << overwrite.name;
}

/// What a reader finds; "none" without an index. Throws DataLoss for an index beside other data.
std::string found(MemoryFiles& files) {
  return files.stat(index_path(kPrefix)) ? all_of(files, kPrefix) : "none";
}

using Contents = std::map<std::string, std::string>;

Contents contents_of(MemoryFiles& files) {
  Contents contents;
  for (const auto& [path, bytes] : files.contents()) contents[path] = *bytes;
  return contents;
}

class BundleCommit : public testing::TestWithParam<Overwrite> {
 protected:
  BundleCommit() {
    GetParam().put_before(before);
    old_content = found(before);
    const auto after = before.copy();
    GetParam().attempt(*after);
    new_content = found(*after);
    EXPECT_NE(old_content, new_content);
  }

  /// Checks what is left when each operation fails; power may be lost then.
  void at_each_operation(Fault fault,
                         const std::function<void(MemoryFiles& left, bool succeeded)>& check) {
    bool complete = false;
    for (std::int64_t at = 0; !complete; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at));
      const auto files = before.copy();
      files->fail_at(at, fault);
      bool succeeded = true;
      try {
        GetParam().attempt(*files);
      } catch (const IoError&) {
        succeeded = false;
      }
      complete = files->operations() <= at;
      EXPECT_TRUE(succeeded || !complete);
      for (const Loss loss : {Loss::kUnsynced, Loss::kContents, Loss::kUpperNames}) {
        const auto left = files->copy();
        left->lose_power(loss);
        check(*left, succeeded);
      }
      files->heal();
      check(*files, succeeded);
    }
  }

  MemoryFiles before;
  std::string old_content, new_content;
};

TEST_P(BundleCommit, AnErrorLeavesTheOldCheckpointOrTheNew) {
  at_each_operation(Fault::kError, [&](MemoryFiles& left, bool succeeded) {
    const std::string content = found(left);
    EXPECT_TRUE(content == new_content || (!succeeded && content == old_content)) << content;
  });
}

// Only the last flush comes after the old index has been replaced.
TEST_P(BundleCommit, AnErrorLeavesEveryFileAsItWas) {
  const Contents was = contents_of(before);
  std::int64_t changed = 0;
  bool complete = false;
  for (std::int64_t at = 0; !complete; ++at) {
    SCOPED_TRACE("operation " + std::to_string(at));
    const auto files = before.copy();
    files->fail_at(at, Fault::kError);
    try {
      GetParam().attempt(*files);
      complete = files->operations() <= at;
    } catch (const IoError& error) {
      files->heal();
      if (contents_of(*files) != was) {
        ++changed;
        EXPECT_EQ(found(*files), new_content);
        EXPECT_TRUE(std::string_view(error.what())
                        .starts_with("/c.index: has the new contents, but a power loss may undo"))
            << error.what();
      }
    }
  }
  const bool replaces = GetParam().old_data_files > 0 && !GetParam().shares_names();
  EXPECT_EQ(changed, replaces ? 1 : 0);
}

TEST_P(BundleCommit, AKillLeavesNoneOnlyWhereNamesAreShared) {
  const bool may_be_none = GetParam().shares_names() || old_content == "none";
  at_each_operation(Fault::kKill, [&](MemoryFiles& left, bool succeeded) {
    const std::string content = found(left);
    EXPECT_TRUE(content == new_content || (!succeeded && content == old_content) ||
                (!succeeded && content == "none" && may_be_none))
        << content;
  });
}

TEST_P(BundleCommit, AKillThatLeavesNoneLosesNoOldFile) {
  const Contents was = contents_of(before);
  at_each_operation(Fault::kKill, [&](MemoryFiles& left, bool) {
    if (found(left) != "none") return;
    std::multiset<std::string> bytes;
    for (const auto& [path, content] : left.contents()) bytes.insert(*content);
    for (const auto& [path, content] : was)
      EXPECT_TRUE(!path.starts_with("/c.") || bytes.contains(content)) << path;
  });
}

TEST_P(BundleCommit, LeavesOnlyFilesOfTheNewCheckpoint) {
  GetParam().attempt(before);
  std::vector<std::string> expected;
  for (std::int32_t file = 0; file < GetParam().new_data_files; ++file)
    expected.push_back(data_path(kPrefix, file, GetParam().new_data_files));
  expected.push_back(index_path(kPrefix));
  std::vector<std::string> paths;
  for (const auto& [path, bytes] : before.contents()) paths.push_back(path);
  EXPECT_EQ(paths, expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, BundleCommit,
                         testing::Values(Overwrite{"OneFile", 0, 1}, Overwrite{"TwoFiles", 0, 2},
                                         Overwrite{"OneFileOverOne", 1, 1},
                                         Overwrite{"TwoFilesOverTwo", 2, 2},
                                         Overwrite{"OneFileOverTwo", 2, 1},
                                         Overwrite{"TwoFilesOverOne", 1, 2}),
                         [](const auto& test) { return test.param.name; });

// A kill between the removal of an index and that of its data has left them.
TEST(BundleCommitNames, DataWithoutAnIndexAreReplaced) {
  MemoryFiles files;
  write_one(files, kPrefix, kOld);
  files.remove("/c.index");
  files.rename("/c.data-00000-of-00001", "/c.data-00001-of-00003");
  write_one(files, kPrefix, kNew);
  files.create("/c.data-00002-of-00003");
  write_one(files, kPrefix, kOld);
  EXPECT_EQ(files.list("/"), (std::vector<std::string>{"c.data-00000-of-00001", "c.index"}));
}

TEST(BundleCommitNames, OfDirectoriesAreRefusedBeforeAnythingChanges) {
  for (const char* directory : {"/c.index", "/c.data-00000-of-00001", "/c.data-00000-of-00002"}) {
    MemoryFiles files;
    files.make_directory(directory);
    EXPECT_EQ(refusal<IoError>([&] { write_one(files, kPrefix, kNew); }),
              std::string(directory) + ": cannot replace: it is a directory");
    EXPECT_EQ(files.list("/"), std::vector<std::string>{std::string(directory).substr(1)});
  }
}

TEST(BundleCommitNames, OfLinksAreReplacedAndNotWhatTheyLeadTo) {
  const TemporaryDirectory temporary;
  const std::filesystem::path directory = temporary.path() / "b", kept = temporary.path() / "kept";
  FileSystem& files = checkpoint::local_files();
  std::filesystem::create_directory(directory);
  std::ofstream(kept) << "kept";
  std::filesystem::create_symlink(kept, directory / "c.index");
  std::filesystem::create_symlink("none", directory / "c.data-00001-of-00002");
  write_one(files, directory / "c", kOld);
  write_one(files, directory / "c", kNew);
  EXPECT_EQ(files.list(directory), (std::vector<std::string>{"c.data-00000-of-00001", "c.index"}));
  EXPECT_FALSE(std::filesystem::is_symlink(directory / "c.index"));
  EXPECT_EQ(checkpoint::read_file(files, kept, 100), "kept");
  EXPECT_EQ(read_all(TensorBundleReader(directory / "c"), "x"), Floats(6, kNew));
}

TEST(BundleCommitWriters, OfOnePrefixTakeTurns) {
  const TemporaryDirectory directory;
  const std::filesystem::path prefix = directory.path() / "c";
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 20; ++i)
          write_one(checkpoint::local_files(), prefix, static_cast<float>(t));
      } catch (const std::exception& error) {
        errors[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
  TensorBundleReader(prefix).verify();
  EXPECT_EQ(checkpoint::local_files().list(directory.path()),
            (std::vector<std::string>{"c.data-00000-of-00001", "c.index"}));
}

}  // namespace
}  // namespace embertable::formats
