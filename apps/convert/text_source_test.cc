#include "apps/convert/text_source.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

/// Text that compresses to several input buffers.
std::string long_text() {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < 3'000'000) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += std::to_string(state >> 20) + "\n";
  }
  return text;
}

std::string read_all(const std::string& path, std::int64_t piece) {
  TextSource source(path);
  std::string text, part(static_cast<std::size_t>(piece), '\0');
  while (const std::int64_t got = source.read(part.data(), piece))
    text.append(part, 0, static_cast<std::size_t>(got));
  EXPECT_EQ(source.read(part.data(), piece), 0);  // and stays at the end
  return text;
}

class TextSourceTest : public testing::Test {
 protected:
  void expect_text(const std::string& path, const std::string& text) {
    for (const std::int64_t piece : {997, 1 << 20})
      EXPECT_TRUE(read_all(path, piece) == text) << path << " by " << piece;
  }
  template <class Error>
  std::string refused(const std::string& path) {
    return refusal<Error>(files_.path(), [&] { read_all(path, 1 << 16); });
  }
  TemporaryFiles files_;
};

TEST_F(TextSourceTest, GivesTheTextOfEveryKindOfFile) {
  const std::string text = long_text();
  expect_text(files_.write("a", text), text);
  expect_text(files_.write("a.gz", gzip(text)), text);
  expect_text(files_.write("a.zst", zstd(text)), text);
}

TEST_F(TextSourceTest, TheNameSaysNothingOfTheContent) {
  expect_text(files_.write("plain.gz", "1,2\n"), "1,2\n");
  expect_text(files_.write("zstd.csv", zstd("1,2\n")), "1,2\n");
}

TEST_F(TextSourceTest, MembersAndFramesAreReadOneAfterTheOther) {
  expect_text(files_.write("a", gzip("one\n") + gzip("") + gzip("two\n")), "one\ntwo\n");
  const std::string skipped("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11);
  expect_text(files_.write("b", skipped + zstd("one\n") + zstd("") + skipped + zstd("two\n")),
              "one\ntwo\n");
}

TEST_F(TextSourceTest, FilesMayBeEmptyOrTiny) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\x1f", "\x28\xb5\x2f"}) {
    expect_text(files_.write("a", text), text);
    expect_text(files_.write("a", gzip(text)), text);
    expect_text(files_.write("a", zstd(text)), text);
  }
}

TEST_F(TextSourceTest, ZerosMayFollowGzipMembers) {
  expect_text(files_.write("a", gzip("one\n") + std::string(600'000, '\0')), "one\n");
}

TEST_F(TextSourceTest, EveryCutIsFound) {
  for (const std::string& whole : {gzip("0123456789"), zstd("0123456789")}) {
    for (std::size_t size = 4; size < whole.size(); ++size) {
      EXPECT_EQ(refused<DataLoss>(files_.write("a", whole.substr(0, size))),
                "'a': compressed data must be complete, got a file cut short")
          << size;
    }
  }
}

TEST_F(TextSourceTest, ACutInALongFileIsFound) {
  for (const std::string& whole : {gzip(long_text()), zstd(long_text())}) {
    for (const std::size_t size : {whole.size() / 2, std::size_t{1} << 18, whole.size() - 1}) {
      EXPECT_EQ(refused<DataLoss>(files_.write("a", whole.substr(0, size))),
                "'a': compressed data must be complete, got a file cut short");
    }
  }
}

TEST_F(TextSourceTest, AFlippedByteIsFound) {
  for (const std::string& whole : {gzip(long_text()), zstd(long_text())}) {
    for (const std::size_t place : {whole.size() / 2, whole.size() - 3}) {
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
      const std::string text = refused<DataLoss>(files_.write("a", damaged));
      EXPECT_TRUE(text.starts_with("'a': compressed data must be ")) << text;
    }
  }
}

TEST_F(TextSourceTest, OtherBytesBehindCompressedOnesAreRefused) {
  for (const std::string& whole : {gzip("one\n"), zstd("one\n")}) {
    EXPECT_EQ(refused<DataLoss>(files_.write("a", whole + "text")),
              "'a': compressed data must be intact, got: other bytes after its end");
  }
}

TEST_F(TextSourceTest, SaysWhyAFileCannotBeRead) {
  EXPECT_EQ(refused<IoError>(files_.path("none")),
            "'none': cannot open: No such file or directory");
  std::filesystem::create_directory(files_.path("folder"));
  EXPECT_EQ(refused<IoError>(files_.path("folder")), "'folder': cannot read: Is a directory");
}

}  // namespace
}  // namespace embertable::jobs
