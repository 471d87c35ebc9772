#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "apps/jobs/text/csv_reader.h"
#include "embertable/errors.h"
#include "testing/sanitized.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Text that people and programs really write, and what becomes of it.
class CsvEdges : public testing::Test {
 protected:
  static constexpr std::size_t kBuffer = 1 << 18;  ///< what a file is first read into

  static Rows read(const std::vector<std::string>& paths, std::size_t columns, CsvFormat format,
                   std::int64_t skip_bad = 0) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i <= columns; ++i) names.push_back(std::to_string(i));
    CsvReader reader(paths, std::move(format), names, skip_bad);
    Rows rows;
    while (reader.next()) {
      rows.emplace_back();
      for (std::size_t i = 0; i < columns; ++i) rows.back().emplace_back(reader.text(i));
    }
    return rows;
  }
  Rows read_text(const std::string& text, std::size_t columns, CsvFormat format = kPlain) {
    return read({files_.write("a", text)}, columns, std::move(format));
  }
  template <class Error = ValueError>
  std::string refused(const std::string& path, std::size_t columns) {
    return refusal<Error>(files_.path(), [&] { read({path}, columns, kPlain); });
  }

  static inline const CsvFormat kPlain = {.header = false};
  TemporaryFiles files_;
};

TEST_F(CsvEdges, ABorderOfTheBufferMayBeAnywhere) {
  const std::string record = "1,\"a\n\"\"b\"\"\",\r\n2,x,\"\"\r\n";
  for (std::size_t before = 0; before <= record.size() + 70; ++before) {
    std::string text = "0," + std::string(kBuffer - 5 - before, 'f') + ",\n";
    const Rows rows = read_text(text + record + record, 3);
    ASSERT_EQ(rows.size(), 5u) << before;
    for (const std::size_t at : {1, 3}) {
      ASSERT_EQ(rows[at], (std::vector<std::string>{"1", "a\n\"b\"", ""})) << before;
      ASSERT_EQ(rows[at + 1], (std::vector<std::string>{"2", "x", ""})) << before;
    }
  }
}

TEST_F(CsvEdges, ALongRecordMayGoOnOverManyPiecesOfTheFile) {
  for (const std::size_t size : {kBuffer - 1, kBuffer, 3 * kBuffer, 9 * kBuffer + 1}) {
    const std::string field(size, 'f');
    EXPECT_EQ(read_text("1," + field + "\r\n2,\"" + field + "\n\"\n3,x", 2),
              (Rows{{"1", field}, {"2", field + "\n"}, {"3", "x"}}))
        << size;
  }
}

TEST_F(CsvEdges, BlanksAroundFieldsAreTakenBeforeEitherLineEnd) {
  const CsvFormat trims = {.separator = '\t', .header = false, .trim = true};
  EXPECT_EQ(read_text(" a \t b \r\n  \t  \r\n\t \r \n c\t \"d \" \r\n", 2, trims),
            (Rows{{"a", "b"}, {"", ""}, {"", "\r"}, {"c", "d "}}));
}

TEST_F(CsvEdges, BytesNeedNotBeText) {
  const std::string nul("a\0b", 3), odd = "\xff\xfe\x80";
  EXPECT_EQ(read_text(nul + "," + odd + "\n" + odd + "," + nul + "\n", 2),
            (Rows{{nul, odd}, {odd, nul}}));
}

TEST_F(CsvEdges, CellsBetweenTabsMayBeEmpty) {
  EXPECT_EQ(read_text("\t\t\n1\t\t2\n\t\t", 3, {.separator = '\t', .header = false}),
            (Rows{{"", "", ""}, {"1", "", "2"}, {"", "", ""}}));
}

TEST_F(CsvEdges, ACarriageReturnWithinALineIsPartOfAField) {
  EXPECT_EQ(read_text("a\rb,\r\nc,\r\r\n", 2), (Rows{{"a\rb", ""}, {"c", "\r"}}));
}

TEST_F(CsvEdges, AQuoteThatOpensLateIsAnyByte) {
  EXPECT_EQ(read_text("5'11\",\"6\"\" x\"\n x\"y\",z\n", 2),
            (Rows{{"5'11\"", "6\" x"}, {" x\"y\"", "z"}}));
}

TEST_F(CsvEdges, ALineOfAHundredMegabytesTakesNoMoreMemoryThanARecordMay) {
  const std::string path =
      files_.write_compressed("a", "1,2\n" + std::string(100 << 20, 'x') + "\n3,4\n");
  EXPECT_EQ(refused(path, 2), "a:2:1: a record must have at most 16777216 bytes");
  EXPECT_EQ(read({path}, 2, kPlain, 1), (Rows{{"1", "2"}, {"3", "4"}}));
}

TEST_F(CsvEdges, ACutFileIsNeverTheWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * 7919) + "," + std::to_string(i) + "\n";
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    for (std::size_t size = 4; size < packed.size(); size += 1 + size / (kSanitized ? 10 : 50)) {
      const std::string path = files_.write("a", packed.substr(0, size));
      EXPECT_THROW(read({path}, 2, kPlain), DataLoss) << size;
      // Nor with records that may be left out: what is missing is none of them.
      EXPECT_THROW(read({path}, 2, kPlain, 1000), DataLoss) << size;
    }
  }
}

TEST_F(CsvEdges, MembersAndFramesMayBeEmptyAndEndWithinALine) {
  const Rows expected = {{"1", "2"}, {"3", "4"}, {"5", "6"}};
  const std::string parts[] = {"", "1,2\n3", "", ",4", "\n5,6"};
  for (const auto pack : {gzip, zstd}) {
    std::string packed;
    for (const std::string& part : parts) packed += pack(part);
    EXPECT_EQ(read_text(packed, 2), expected);
    EXPECT_EQ(read({files_.write("a", pack("")), files_.write("b", packed)}, 2, kPlain), expected);
  }
}

TEST_F(CsvEdges, AFolderIsNoFile) {
  EXPECT_EQ(refused<IoError>(files_.path(), 1), "'': cannot read: Is a directory");
}

TEST_F(CsvEdges, AFileMayBeForbidden) {
  const std::string path = files_.write("a", "1\n");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const uid_t user = geteuid();
  constexpr uid_t kNobody = 65534;  // root may read every file, so it is somebody else meanwhile
  if (user == 0 && seteuid(kNobody) != 0)
    GTEST_SKIP() << "root may read every file; runs for other users, and where root may change";
  const std::string message = refused<IoError>(path, 1);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(message, "'a': cannot open: Permission denied");
}

TEST_F(CsvEdges, NumbersAreFiniteAndPlain) {
  const std::vector<std::string> columns = {"1"};
  for (const std::string text : {"nan", "-nan", "inf", "INF", "infinity", "0x10", "0x1p3", "1,5",
                                 "1'000", "1_000", "+1", " 1", "1 ", "", "1e999", "--1", "."}) {
    CsvReader reader(files_.write("a", text + "\tx\n"), {.separator = '\t', .header = false},
                     columns);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(refusal<BrokenRecord>(files_.path(), [&] { reader.number(0); }),
              "a:1:1: '1' must be a number, got '" + text + "'");
  }
}

TEST_F(CsvEdges, NegativeZeroIsZero) {
  for (const char* text : {"-0", "-0.0", "-0e5"}) {
    const std::vector<std::string> columns = {"1"};
    CsvReader reader(files_.write("a", text), kPlain, columns);
    ASSERT_TRUE(reader.next());
    EXPECT_FALSE(std::signbit(reader.number(0))) << text;
  }
}

TEST_F(CsvEdges, IntegersHave64Bits) {
  const std::vector<std::string> columns = {"1"};
  for (const std::string text :
       {"9223372036854775808", "-9223372036854775809", "1.5", "1.0", "1e3", "0x7"}) {
    CsvReader reader(files_.write("a", text), kPlain, columns);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(
        refusal<BrokenRecord>(files_.path(), [&] { reader.integer(0); }),
        "a:1:1: '1' must be an integer of 64 bits, or any text with keys = \"string\", got '" +
            text + "'");
  }
}

TEST_F(CsvEdges, AHeaderMayLackOptionalColumns) {
  const std::string path = files_.write("a", "x,y\n1,2\n3,4\n");
  const std::vector<std::string> columns = {"y", "z", "x", "3"};
  CsvReader reader(std::span(&path, 1), {}, columns, 0, 1);
  EXPECT_TRUE(reader.has(0) && !reader.has(1) && reader.has(2) && !reader.has(3));
  EXPECT_EQ(reader.name(1), "z");
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.text(0), "4");
  EXPECT_EQ(reader.text(1), "");
  EXPECT_EQ(reader.text(2), "3");
  EXPECT_EQ(refusal<ValueError>(files_.path(),
                                [&] { CsvReader(std::span(&path, 1), {}, columns, 0, 2); }),
            "'a' has no column 'z'");
}

TEST_F(CsvEdges, AHeaderNameComesBeforeANumber) {
  const std::vector<std::string> columns = {"2", "1", "2-3"};
  CsvReader reader(files_.write("a", "2,2-3,x\na,b,c\n"), {}, columns);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.text(0), "a");
  EXPECT_EQ(reader.text(1), "a");
  EXPECT_EQ(reader.text(2), "b");
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"2", "2-3", "x"}));
}

}  // namespace
}  // namespace embertable::jobs
