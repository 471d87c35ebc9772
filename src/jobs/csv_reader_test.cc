#include "jobs/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "jobs/temporary_files.h"

namespace embertable::jobs {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class CsvReaderTest : public testing::Test {
 protected:
  Rows read(const std::string& content, std::vector<std::string> columns, CsvFormat format = {}) {
    return read_file(files_.write("a.csv", content), columns, format);
  }
  static Rows read_file(const std::string& path, std::vector<std::string> columns,
                        CsvFormat format = {}) {
    CsvReader reader(path, format, columns);
    Rows rows;
    while (reader.next()) {
      rows.emplace_back();
      for (std::size_t i = 0; i < columns.size(); ++i) rows.back().emplace_back(reader.text(i));
    }
    return rows;
  }
  template <class Error = ValueError>
  std::string refused(const std::string& content, std::vector<std::string> columns,
                      CsvFormat format = {}) {
    return refusal<Error>(files_.path(), [&] { read(content, columns, format); });
  }
  TemporaryFiles files_;
};

TEST_F(CsvReaderTest, GivesTheWantedColumnsInTheWantedOrder) {
  EXPECT_EQ(read("a,b,c\n1,2,3\n4,5,6\n", {"c", "a"}), (Rows{{"3", "1"}, {"6", "4"}}));
}

TEST_F(CsvReaderTest, AColumnMayBeWantedTwice) {
  EXPECT_EQ(read("a,b\n1,2\n", {"b", "b", "a"}), (Rows{{"2", "2", "1"}}));
}

TEST_F(CsvReaderTest, ColumnsWithoutHeaderAreNumbers) {
  EXPECT_EQ(read("1\t2\n3\t4\n", {"2"}, {.separator = '\t', .header = false}),
            (Rows{{"2"}, {"4"}}));
}

TEST_F(CsvReaderTest, QuotesHoldSeparatorsLineBreaksAndDoubledQuotes) {
  EXPECT_EQ(read("a,b\n\"1,\n\"\"one\"\"\",\"\"\n\"\"\"\",x\n", {"a", "b"}),
            (Rows{{"1,\n\"one\"", ""}, {"\"", "x"}}));
}

TEST_F(CsvReaderTest, AQuoteWithinAFieldIsAQuote) {
  EXPECT_EQ(read("a,b\n1\"x\",2\n", {"a"}), (Rows{{"1\"x\""}}));
}

TEST_F(CsvReaderTest, LinesMayEndWithCarriageReturns) {
  EXPECT_EQ(read("a,b\r\n1,2\r\n\"3\",\"4\"\r\n", {"a", "b"}), (Rows{{"1", "2"}, {"3", "4"}}));
}

TEST_F(CsvReaderTest, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(read("a,b\n1,2", {"b"}), (Rows{{"2"}}));
  EXPECT_EQ(read("a,b\n1,\"2\"", {"b"}), (Rows{{"2"}}));
  EXPECT_EQ(read("a,b\n1,", {"b"}), (Rows{{""}}));
  EXPECT_EQ(read("a,b\n1,2\r", {"b"}), (Rows{{"2"}}));
}

TEST_F(CsvReaderTest, EmptyLinesAndAByteOrderMarkAreSkipped) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a,b\n\n1,2\n\r\n3,4\n\n",
                 {"a"}),
            (Rows{{"1"}, {"3"}}));
}

TEST_F(CsvReaderTest, AFileMayHoldOnlyItsHeader) {
  EXPECT_EQ(read("a,b\n", {"a"}), Rows{});
  EXPECT_EQ(read("", {"1"}, {.header = false}), Rows{});
}

TEST_F(CsvReaderTest, ReadsCompressedFilesOfManyBuffers) {
  std::string text = "key,list\n";
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",\"a,b\"\"c\"\n";
  const Rows rows = read_file(files_.write_compressed("a.csv.gz", text), {"key", "list"});
  ASSERT_EQ(rows.size(), 200'000u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i], (std::vector<std::string>{std::to_string(i), "a,b\"c"}));
  }
}

TEST_F(CsvReaderTest, AFieldMayBeLongerThanABuffer) {
  const std::string field(3 << 20, 'x');
  EXPECT_EQ(read("a,b\n1,\"" + field + "\"\n2,y\n", {"b"}), (Rows{{field}, {"y"}}));
}

TEST_F(CsvReaderTest, SaysWhereARecordIsBroken) {
  EXPECT_EQ(refused("a,b\n1,2\n3\n", {"a"}),
            "a.csv:3:2: a record must have 2 fields as the first line has, got 1");
  EXPECT_EQ(refused("a,b\n1,2,3\n", {"a"}),
            "a.csv:2:6: a record must have 2 fields as the first line has, got 3");
  EXPECT_EQ(refused("a,b\n\"1\"x,2\n", {"a"}),
            "a.csv:2:4: after a closing quote must come ',' or the end of the line, got 'x'");
  EXPECT_EQ(refused("a,b\n1,\"2\n3,4\n", {"a"}),
            "a.csv:2:3: a quoted field must have a closing quote, got the end of the file");
  EXPECT_EQ(refused("1,2\n", {"3"}, {.header = false}),
            "a.csv:1:4: column 3 is wanted, got 2 columns");
}

TEST_F(CsvReaderTest, SaysWhichColumnIsMissingAndTheNearest) {
  EXPECT_EQ(refused("user_id,book_id\n1,2\n", {"userid"}),
            "'a.csv' has no column 'userid'; the nearest is 'user_id'");
  EXPECT_EQ(refused("1,2\n", {"x"}, {.header = false}),
            "'a.csv' has no header: a column must be a number from 1, got 'x'");
  EXPECT_EQ(refused("", {"a"}),
            "'a.csv' must start with a line that names its columns, got an empty file");
}

TEST_F(CsvReaderTest, SaysWhereANumberIsNone) {
  const std::vector<std::string> columns = {"b"};
  CsvReader reader(files_.write("a.csv", "a,b\n\"x\ny\",1e\n"), {}, columns);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { reader.number(0); }),
            "a.csv:3:4: 'b' must be a number, got '1e'");
  EXPECT_EQ(refusal<ValueError>(files_.path(), [&] { reader.integer(0); }),
            "a.csv:3:4: 'b' must be an integer of 64 bits, got '1e'");
}

TEST_F(CsvReaderTest, ReadsNumbers) {
  const std::vector<std::string> columns = {"1", "2", "3"};
  CsvReader reader(files_.write("a.csv", "-9223372036854775808,4.5,3\n"), {.header = false},
                   columns);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.integer(0), INT64_MIN);
  EXPECT_EQ(reader.number(1), 4.5);
  EXPECT_EQ(reader.number(2), 3);
}

TEST_F(CsvReaderTest, DistinguishesAMissingFileFromADamagedOne) {
  EXPECT_EQ(refusal<IoError>(files_.path(), [&] { read_file(files_.path("none.csv"), {"a"}); }),
            "'none.csv': cannot open: No such file or directory");
  std::string text = "a\n";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 100'003) + "\n";
  const std::string path = files_.write_compressed("b.csv.gz", text);
  const auto bytes = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, bytes / 2);
  EXPECT_EQ(refusal<DataLoss>(files_.path(), [&] { read_file(path, {"a"}); }),
            "'b.csv.gz': compressed data must be complete, got a file cut short");
}

TEST(ForEachPart, CutsAtTheSeparator) {
  const auto parts = [](std::string_view list, std::string_view separator) {
    std::vector<std::string> found;
    for_each_part(list, separator, [&](std::string_view part) { found.emplace_back(part); });
    return found;
  };
  EXPECT_THAT(parts("a|b||c", "|"), testing::ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(parts("a, b", ", "), testing::ElementsAre("a", "b"));
  EXPECT_THAT(parts("a", ","), testing::ElementsAre("a"));
  EXPECT_THAT(parts("", ","), testing::IsEmpty());
}

}  // namespace
}  // namespace embertable::jobs
