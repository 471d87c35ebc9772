#include "apps/jobs/text/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/executor.h"
#include "testing/sanitized.h"
#include "testing/temporary_files.h"

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
    return read_files({path}, columns, format, 0);
  }
  static Rows read_files(const std::vector<std::string>& paths, std::vector<std::string> columns,
                         CsvFormat format, std::int64_t skip_bad) {
    CsvReader reader(paths, format, columns, skip_bad);
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
  constexpr std::size_t kLines = kSanitized ? 100'000 : 200'000;
  std::string text = "key,list\n";
  for (std::size_t i = 0; i < kLines; ++i) text += std::to_string(i) + ",\"a,b\"\"c\"\n";
  const Rows rows = read_file(files_.write_compressed("a.csv.gz", text), {"key", "list"});
  ASSERT_EQ(rows.size(), kLines);
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
  EXPECT_EQ(
      refused("user;item;rating\n1;2;3\n", {"user"}),
      "'a.csv' has no column 'user': its first line is one column with ';' in it, which may be "
      "meant as the field_separator");
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
  EXPECT_EQ(
      refusal<ValueError>(files_.path(), [&] { reader.integer(0); }),
      "a.csv:3:4: 'b' must be an integer of 64 bits, or any text with keys = \"string\", got '1e'");
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

TEST_F(CsvReaderTest, ANumberedColumnOfAHeaderHasItsName) {
  const std::vector<std::string> columns = {"2", "a"};
  const CsvReader reader(files_.write("a.csv", "a,b\n1,2\n"), {}, columns);
  EXPECT_EQ(reader.name(0), "b");
  EXPECT_EQ(reader.name(1), "a");
}

TEST_F(CsvReaderTest, ANameOfTwoColumnsIsNeither) {
  EXPECT_EQ(refused("a,b,c,a\n1,2,3,4\n", {"b", "a"}),
            "'a.csv': a column's name must be of one column, got 'a', which is that of columns 1 "
            "and 4; their numbers tell them apart");
  EXPECT_EQ(read("a,b,c,a\n1,2,3,4\n", {"b", "4", "1"}), (Rows{{"2", "4", "1"}}));
  const std::vector<std::string> columns = {"4", "2"};
  const CsvReader reader(files_.path("a.csv"), {}, columns);
  EXPECT_EQ(reader.name(0), "4");
  EXPECT_EQ(reader.name(1), "b");
}

TEST_F(CsvReaderTest, BlanksAroundFieldsCanBeTrimmed) {
  EXPECT_EQ(read("a, b\t,c\n 1 ,\t2, \" 3 \" \r\n,  , \n", {"a", "b", "c"}, {.trim = true}),
            (Rows{{"1", "2", " 3 "}, {"", "", ""}}));
  EXPECT_EQ(read("a, b\n1 , 2\n", {" b", "a"}), (Rows{{" 2", "1 "}}));
  EXPECT_EQ(read(" 1\t\t3 \n", {"1", "2", "3"}, {.separator = '\t', .header = false, .trim = true}),
            (Rows{{"1", "", "3"}}));
}

TEST_F(CsvReaderTest, LinesCanBeComments) {
  const CsvFormat format = {.header = false, .comment = "|"};
  EXPECT_EQ(read("|1x3 \"Cross validator\n1,2\n|,2\n3,|4\n|", {"1", "2"}, format),
            (Rows{{"1", "2"}, {"3", "|4"}}));
  EXPECT_EQ(read("|c\na,b\n1,2\n", {"b"}, {.comment = "|"}), (Rows{{"2"}}));
  EXPECT_EQ(refused("# 1\n1,2\n# 2\n1\n", {"1"}, {.header = false, .comment = "# "}),
            "a.csv:4:2: a record must have 2 fields as the first line has, got 1");
  EXPECT_EQ(read(std::string(3 << 20, '|') + "\n1,2\n", {"1"}, format), (Rows{{"1"}}));
}

TEST_F(CsvReaderTest, FilesFollowEachOtherEachWithItsHeader) {
  const std::vector<std::string> paths = {files_.write("a",
                                                       "\xEF\xBB\xBF"
                                                       "k,v\n1,2\n3,4"),
                                          files_.write("b", "k,v\n"),
                                          files_.write("c", zstd("k,v\n5,6\n"))};
  EXPECT_EQ(read_files(paths, {"v"}, {}, 0), (Rows{{"2"}, {"4"}, {"6"}}));
  EXPECT_EQ(read_files({files_.write("d", "1,2"), files_.write("e", ""), files_.write("f", "3,4")},
                       {"2"}, {.header = false}, 0),
            (Rows{{"2"}, {"4"}}));
}

TEST_F(CsvReaderTest, FilesMustAgree) {
  const std::string a = files_.write("a", "k,v\n1,2\n");
  const auto refused_with = [&](const std::string& b, CsvFormat format, std::int64_t skip_bad) {
    const std::string path = files_.write("b", b);
    return refusal<ValueError>(files_.path(), [&] {
      read_files({a, path}, {"1"}, format, skip_bad);
    });
  };
  EXPECT_EQ(refused_with("v,k\n1,2\n", {}, 9),
            "'b' must have the columns of 'a', in the same order");
  EXPECT_EQ(refused_with("", {}, 9),
            "'b' must start with a line that names its columns, got an empty file");
  EXPECT_EQ(refused_with("1,2\n\n1,2,3\n", {.header = false}, 0),
            "b:3:6: a record must have 2 fields as the first line has, got 3");
  EXPECT_EQ(refused_with("\"k\"x,v\n", {}, 9),
            "b:1:4: after a closing quote must come ',' or the end of the line, got 'x'");
}

TEST_F(CsvReaderTest, BrokenRecordsCanBeLeftOut) {
  const std::string path =
      files_.write("a.csv", "a,b\n1,2\n3\n4,5,6\n\"7\"x,8\n\"9\n\",10\n11,12\n\"13,14\n15,16\n");
  EXPECT_EQ(read_files({path}, {"a", "b"}, {}, 4),
            (Rows{{"1", "2"}, {"9\n", "10"}, {"11", "12"}, {"15", "16"}}));
  EXPECT_EQ(refusal<BrokenRecord>(files_.path(), [&] { read_files({path}, {"a"}, {}, 3); }),
            "a.csv:9:1: a quoted field must have a closing quote, got the end of the file; 3 "
            "broken before it are left out, and no more may be");
}

TEST_F(CsvReaderTest, AQuoteThatIsNotClosedCostsItsOwnLine) {
  EXPECT_EQ(
      read_files({files_.write("a.csv", "a,b\n\"1,2\n3,4\n5,\"6\"\n7,8\n")}, {"a", "b"}, {}, 1),
      (Rows{{"3", "4"}, {"5", "6"}, {"7", "8"}}));
}

TEST_F(CsvReaderTest, ARecordOfMoreThanTheMostBytesCanBeLeftOut) {
  const std::string long_line(static_cast<std::size_t>(CsvReader::kMaxRecord) + (5 << 20), 'x');
  const std::string path = files_.write("a.csv", "a,b\n1,2\n" + long_line + ",1\n3,4\n");
  EXPECT_EQ(read_files({path}, {"a"}, {}, 1), (Rows{{"1"}, {"3"}}));
  EXPECT_EQ(refusal<BrokenRecord>(files_.path(), [&] { read_files({path}, {"a"}, {}, 0); }),
            "a.csv:3:1: a record must have at most 16777216 bytes");
}

TEST_F(CsvReaderTest, ARecordMayHaveTheMostBytesAndNoMoreWhereverItStands) {
  const std::string most(static_cast<std::size_t>(CsvReader::kMaxRecord), 'x');
  for (const std::string& before : {std::string(), std::string("1\n2\n"), most + "\n"}) {
    const std::string path = files_.write("a.csv", "a\n" + before + most + "\n");
    EXPECT_EQ(read_files({path}, {"a"}, {}, 0).back(), (std::vector<std::string>{most}));
    files_.write("a.csv", "a\n" + before + most + "x\n3\n");
    EXPECT_EQ(read_files({path}, {"a"}, {}, 1).back(), (std::vector<std::string>{"3"}));
    EXPECT_NE(refusal<BrokenRecord>(files_.path(), [&] { read_files({path}, {"a"}, {}, 0); })
                  .find(":1: a record must have at most 16777216 bytes"),
              std::string::npos);
  }
}

TEST_F(CsvReaderTest, LinesAreCountedAcrossWhatIsLeftOut) {
  const std::vector<std::string> columns = {"a"},
                                 paths = {files_.write("a.csv", "a,b\n\"1\n\"x,2\n3,4\n5\n6,z\n")};
  CsvReader reader(paths, {}, columns, 3);
  ASSERT_TRUE(reader.next());  // what is left of the first one is broken too
  EXPECT_EQ(reader.line(), 4);
  EXPECT_EQ(reader.left_out().total(), 2);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.line(), 6);
  EXPECT_EQ(reader.left_out().total(), 3);
  EXPECT_FALSE(reader.next());
}

TEST_F(CsvReaderTest, FieldsThatWillNotDoCountAsBrokenRecords) {
  const std::vector<std::string> columns = {"a"},
                                 paths = {files_.write("a.csv", "a\n1\nx\n2\ny\n3\n")};
  CsvReader reader(paths, {}, columns, 1);
  std::vector<std::int64_t> numbers;
  const auto read_numbers = [&] {
    while (reader.next()) {
      try {
        numbers.push_back(reader.integer(0));
      } catch (const BrokenRecord&) {
        reader.leave_out();
      }
    }
  };
  EXPECT_EQ(
      refusal<BrokenRecord>(files_.path(), read_numbers),
      "a.csv:5:1: 'a' must be an integer of 64 bits, or any text with keys = \"string\", got 'y'; "
      "1 broken before it is left out, and no more may be");
  EXPECT_THAT(numbers, testing::ElementsAre(1, 2));
}

/// What a random text means, read byte by byte.
Rows slow_rows(const std::string& text) {
  Rows rows;
  std::vector<std::string> row(1);
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (text[i + 1] == '"') {
        row.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = any = true;
    } else if (c == ',') {
      row.emplace_back();
      any = true;
    } else if (c == '\n') {
      if (any) rows.push_back(row);
      row.assign(1, "");
      any = false;
    } else if (c != '\r') {
      row.back() += c;
      any = true;
    }
  }
  return rows;
}

/// Records of three fields, each of a random form, some longer than a block of the scan.
std::string random_text(std::uint64_t seed) {
  std::string text;
  const auto random = [&seed](std::uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
  };
  for (std::uint64_t records = random(40); records > 0; --records) {
    for (int field = 0; field < 3; ++field) {
      const bool quoted = random(3) == 0;
      std::string body;
      for (std::uint64_t left = random(8) == 0 ? random(200) : random(6); left > 0; --left)
        body += quoted ? std::string(R"(a,"")").substr(random(2), 1) +
                             (random(9) == 0 ? "\n" : "") + (random(9) == 0 ? "\"\"" : "")
                       : std::string(1, "abcdef"[random(6)]);
      text += (field > 0 ? "," : "") + (quoted ? "\"" + body + "\"" : body);
    }
    text += random(3) == 0 ? "\r\n" : random(9) == 0 ? "\n\n" : "\n";
  }
  return text;
}

TEST_F(CsvReaderTest, ReadsRandomTextAsAParserByteByByteDoes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = random_text(test_seed(seed));
    ASSERT_EQ(read(text, {"1", "2", "3"}, {.header = false}), slow_rows(text)) << seed << "\n"
                                                                               << text;
  }
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
