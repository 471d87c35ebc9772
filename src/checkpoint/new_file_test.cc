#include "checkpoint/new_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/refusal.h"
#include "testing/temporary_directory.h"

namespace embertable::checkpoint {
namespace {

using Names = std::vector<std::string>;

/// Whether the directory of tests has files without names.
bool has_unnamed_files(const std::filesystem::path& directory) {
  const auto file = local_files().create_unnamed(directory / "probe");
  const bool unnamed = !local_files().stat(directory / "probe");
  if (!unnamed) local_files().remove(directory / "probe");
  return unnamed;
}

TEST(NewFile, ReplacesAFileOnlyOnceItIsComplete) {
  const TemporaryDirectory directory;
  MemoryFiles memory;
  const std::pair<FileSystem*, std::filesystem::path> places[] = {
      {&local_files(), directory.path()}, {&memory, "/"}};
  for (const auto& [files, root] : places) {
    for (const std::string text : {"first", "second"}) {
      const Names before = files->list(root);
      {
        NewFile never(*files, root / "f");
        never.write(bytes_of("never"));
      }
      EXPECT_EQ(files->list(root), before);
      NewFile file(*files, root / "f");
      file.write(bytes_of(text));
      file.write(bytes_of(std::string(3 << 20, '.')));
      if (text == "second") {
        EXPECT_EQ(read_file(*files, root / "f", 8 << 20).substr(0, 5), "first");
      }
      file.commit();
      EXPECT_EQ(files->list(root), Names{"f"});
      EXPECT_EQ(read_file(*files, root / "f", 8 << 20), text + std::string(3 << 20, '.'));
    }
  }
}

TEST(NewFile, HasItsTemporaryNameOnceItIsSynced) {
  const TemporaryDirectory directory;
  NewFile file(local_files(), directory.path() / "f");
  file.write(bytes_of("text"));
  file.sync();
  file.sync();
  EXPECT_EQ(read_file(local_files(), file.temporary(), 4), "text");
  local_files().rename(file.temporary(), directory.path() / "f");
  file.renamed();
  EXPECT_EQ(local_files().list(directory.path()), Names{"f"});
}

TEST(NewFile, OfAProcessThatEndsLeavesNothing) {
  const TemporaryDirectory directory;
  if (!has_unnamed_files(directory.path())) GTEST_SKIP() << "the file system has no unnamed files";
  const pid_t child = fork();
  if (child == 0) {
    NewFile file(local_files(), directory.path() / "f");
    file.write(bytes_of(std::string(3 << 20, '.')));
    _exit(local_files().list(directory.path()).empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(local_files().list(directory.path()), Names{});
}

TEST(NewFile, NeedsADirectoryAndANameThatIsNone) {
  const TemporaryDirectory directory;
  make_directories(local_files(), directory.path() / "inner");
  EXPECT_NE(refusal<IoError>([&] {
              NewFile(local_files(), directory.path() / "inner");
            }).find("cannot replace: it is a directory"),
            std::string::npos);
  EXPECT_THROW(NewFile(local_files(), directory.path() / "none" / "f"), IoError);
}

}  // namespace
}  // namespace embertable::checkpoint
