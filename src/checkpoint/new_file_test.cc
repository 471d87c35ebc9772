#include "checkpoint/new_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
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

TEST(NewFile, SaysThatItHasItsNameWhereItsDirectoryCannotBeFlushed) {
  MemoryFiles files;
  NewFile file(files, "/f");
  file.write(bytes_of("text"));
  files.meanwhile = [&](const std::string& operation, const std::filesystem::path& path) {
    if (operation == "sync" && path == "/") files.fail_at(0, MemoryFiles::Fault::kError);
  };
  const std::string text = refusal<IoError>([&] { file.commit(); });
  EXPECT_EQ(text.find("/f: has the new contents, but a power loss may undo that: /: cannot"), 0u)
      << text;
  files.meanwhile = {};
  files.heal();
  EXPECT_EQ(files.list("/"), Names{"f"});
  EXPECT_EQ(read_file(files, "/f", 4), "text");
}

TEST(NewFile, HasItsTemporaryNameOnceItTakesIt) {
  const TemporaryDirectory directory;
  NewFile file(local_files(), directory.path() / "f");
  file.write(bytes_of("text"));
  file.sync();
  EXPECT_EQ(local_files().list(directory.path()).empty(), has_unnamed_files(directory.path()));
  file.take_temporary_name();
  file.take_temporary_name();
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

TEST(NewFile, ReplacesNoPipeNoDeviceAndNoDescriptor) {
  const TemporaryDirectory directory;
  const std::filesystem::path pipe = directory.path() / "pipe", link = directory.path() / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/proc/self/fd/1", link);
  for (const std::filesystem::path& path :
       {pipe, link, std::filesystem::path("/dev/null"), std::filesystem::path("/dev/stdout")})
    EXPECT_NE(refusal<IoError>([&] {
                NewFile(local_files(), path);
              }).find("cannot replace: it is no regular file"),
              std::string::npos)
        << path;
  EXPECT_EQ(local_files().list(directory.path()), (Names{"link", "pipe"}));
  EXPECT_EQ(descriptor_named(link), 1);
  EXPECT_EQ(descriptor_named("/dev/fd/27"), 27);
  for (const char* none : {"", "1", "/proc/self/fd", "/dev/null", "/none/1"})
    EXPECT_EQ(descriptor_named(none), std::nullopt) << none;
}

TEST(NewFile, MayHaveTheLongestName) {
  const TemporaryDirectory directory;
  NewFile file(local_files(), directory.path() / std::string(255, 'n'));
  file.commit();
  EXPECT_EQ(local_files().list(directory.path()), Names{std::string(255, 'n')});
  EXPECT_THROW(NewFile(local_files(), directory.path() / std::string(256, 'n')), IoError);
}

TEST(NewFile, StaysWhereItWasMade) {
  const TemporaryDirectory directory, other;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  NewFile file(local_files(), "f");
  std::filesystem::current_path(other.path());
  file.commit();
  std::filesystem::current_path(before);
  EXPECT_EQ(local_files().list(directory.path()), Names{"f"});
  EXPECT_EQ(local_files().list(other.path()), Names{});
}

}  // namespace
}  // namespace embertable::checkpoint
