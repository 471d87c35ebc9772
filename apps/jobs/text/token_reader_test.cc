#include "apps/jobs/text/token_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;
using Lines = std::vector<std::vector<std::string>>;

class TokenReaderTest : public testing::Test {
 protected:
  static Lines read(const std::vector<std::string>& paths) {
    TokenReader reader(paths);
    Lines lines;
    while (reader.next()) {
      if (reader.begins_line()) lines.emplace_back();
      lines.back().emplace_back(reader.text());
    }
    return lines;
  }
  Lines read_text(const std::string& text) { return read({files_.write("a", text)}); }
  TemporaryFiles files_;
};

TEST_F(TokenReaderTest, CutsLinesAtBlanks) {
  EXPECT_EQ(read_text("1 22\t333\n\n  4  \r\n5"), (Lines{{"1", "22", "333"}, {"4"}, {"5"}}));
}

TEST_F(TokenReaderTest, ATextMayHaveNoTokens) {
  EXPECT_EQ(read_text(""), Lines{});
  EXPECT_EQ(read_text(" \n\t\n"), Lines{});
}

TEST_F(TokenReaderTest, AByteOrderMarkIsNoPartOfAToken) {
  EXPECT_EQ(read_text("\xEF\xBB\xBF"
                      "a b"),
            (Lines{{"a", "b"}}));
  const std::string path = files_.write("marked", "\xEF\xBB\xBF x");
  TokenReader reader(path);
  reader.next();
  EXPECT_EQ(reader.position(), path + ":1:2");
}

TEST_F(TokenReaderTest, FilesFollowEachOtherAndEndTheirLines) {
  EXPECT_EQ(
      read({files_.write("a", "1 2"), files_.write("b", ""), files_.write("c", gzip("3\n4"))}),
      (Lines{{"1", "2"}, {"3"}, {"4"}}));
}

TEST_F(TokenReaderTest, TokensMayStandAcrossBuffersOrBeLonger) {
  const std::string longest(3 << 20, 'x');
  std::string text = longest + " ";
  Lines expected = {{longest}};
  for (int i = 0; i < 300'000; ++i) {
    text += std::to_string(i) + (i % 7 == 0 ? "\n" : " ");
    if (i % 7 == 1) expected.emplace_back();
    expected.back().push_back(std::to_string(i));
  }
  EXPECT_TRUE(read_text(text) == expected);
}

TEST_F(TokenReaderTest, SaysWhereATokenIsWrong) {
  TokenReader reader(files_.write("a", "1 2\n-3 4x"));
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 3 && reader.next(); ++i) numbers.push_back(reader.integer());
  EXPECT_THAT(numbers, ElementsAre(1, 2, -3));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 2);
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { reader.integer(); }),
            "a:2:4: a token must be an integer of 64 bits, got '4x'");
}

TEST_F(TokenReaderTest, PlacesAreRightAfterManyBuffers) {
  std::string text;
  while (text.size() < 5'000'000) text += "0123456789 ";
  TokenReader reader(files_.write("a", text + "\nabc x"));
  while (reader.next() && reader.text() != "x") {
  }
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { reader.refuse("y"); }),
            "a:2:5: a token must be y, got 'x'");
}

TEST_F(TokenReaderTest, TokensAndLinesCanBeLeftOut) {
  const std::string longest((16 << 20) + 5, 'x');
  const std::string path =
      files_.write("a", "1 2\n3 y 4\n" + longest + " 5\n6 " + longest + "\n7\ny 8");
  TokenReader reader(std::span(&path, 1), 4);
  std::vector<std::int64_t> numbers;
  for (bool more = true; more;) {
    try {
      more = reader.next();
      if (more) numbers.push_back(reader.integer());
    } catch (const BrokenRecord&) {
      reader.leave_out();
      if (reader.line() != 3) reader.skip_line();
    }
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 5, 6, 7));
  EXPECT_EQ(reader.left_out().total(), 4);
}

TEST_F(TokenReaderTest, ATokenMayBeTooLong) {
  const std::string path = files_.write("a", "b\n" + std::string((16 << 20) + 1, 'x'));
  EXPECT_EQ(
      refusal<ValueError>(files_.path(), [&] { read({path}); }),
      "a:2:1: a token must be at most 16777216 bytes long, got '" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace embertable::jobs
