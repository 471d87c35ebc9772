#include "apps/jobs/data/record_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;

/// The spec that a job file with this text gives its records.
RecordsSpec spec_of(const std::string& text) {
  TomlDocument document(text, "job.toml", {});
  TomlSection root(document);
  return read_records_spec(root);
}

class RecordReaderTest : public testing::Test {
 protected:
  DataSet read(const std::string& job, std::int64_t skip_bad = 0) {
    return read_data(spec_of(job), {.root = files_.path(), .skip_bad = skip_bad});
  }
  template <class Error = ValueError>
  std::string refused(const std::string& job, std::int64_t skip_bad = 0) {
    return refusal<Error>(files_.path(), [&] { read(job, skip_bad); });
  }
  static std::string refused_spec(const std::string& job) {
    return refusal<ValueError>("", [&] { spec_of(job); });
  }
  static std::vector<float> labels(const DataSet& data) {
    std::vector<float> all;
    for (std::int64_t s = 0; s < data.samples.size(); ++s) all.push_back(data.samples.label(s));
    return all;
  }
  static std::vector<std::int32_t> ids(const DataSet& data, std::int64_t sample) {
    const IdColumn& column = data.columns[0];
    const std::int32_t* first = data.samples.row(sample) + column.cell;
    return {first, first + column.width};
  }
  TemporaryFiles files_;
};

constexpr const char* kClicks = R"(
[data]
file = "clicks.tsv"
field_separator = "\t"
header = false
label = 1
range = [0, 1]
[ids.field]
columns = ["2-3", 4]
buckets = [2]
min_count = 2
)";

TEST_F(RecordReaderTest, AClickTableIsOneColumnOfManyIds) {
  // Records 0 and 1 train, record 2 is for the test.
  files_.write("clicks.tsv", "1\t100\ta\tb\n0\t101\ta\tc\n0\t1\tc\tb\n");
  const DataSet data = read(kClicks);
  EXPECT_EQ(data.columns[0].width, 3);
  EXPECT_EQ(data.samples.stride, 4);
  EXPECT_THAT(data.part, ElementsAre(Part::kTraining, Part::kTraining, Part::kTest));
  const IdMap keys = data.columns[0].keys.id_map();
  EXPECT_EQ(keys.string_key(0), "2=~21");
  EXPECT_EQ(keys.string_key(1), "3=a");
  EXPECT_EQ(keys.string_key(2), "2");
  EXPECT_EQ(keys.string_key(4), "4");
  EXPECT_EQ(keys.num_rows(), 5);
  EXPECT_THAT(ids(data, 0), ElementsAre(0, 1, 4));
  EXPECT_THAT(ids(data, 1), ElementsAre(0, 1, 4));
  EXPECT_THAT(ids(data, 2), ElementsAre(2, 3, 4));
  EXPECT_THAT(labels(data), ElementsAre(1, 0, 0));
}

TEST_F(RecordReaderTest, CountsWhereTheValidationPartTrainsToo) {
  std::string text;
  int validation = 0;
  for (int record = 0; record < 100; ++record) {
    const bool is_validation = split_part(static_cast<std::uint64_t>(record)) == Part::kValidation;
    validation += is_validation;
    text += std::string("0\t1\t") + (is_validation ? "v" : "t") + "\tx\n";
  }
  ASSERT_GE(validation, 2);
  files_.write("clicks.tsv", text);
  EXPECT_EQ(read(kClicks).columns[0].keys.find(std::string_view("3=v")), -1);
  const std::string both = std::string(kClicks) + "[split]\ntrain_on_validation = true\n";
  EXPECT_GE(read(both).columns[0].keys.find(std::string_view("3=v")), 0);
}

constexpr const char* kAdult = R"(
[data]
file = ["a.data", "b.data"]
header = false
trim = true
comment = "|"
label = 3
positive = [">50K", ">50K."]
negative = ["<=50K", "<=50K."]
[ids.field]
columns = ["1-2"]
missing = "?"
[split]
test_file = "adult.test"
validation = 0.2
)";

TEST_F(RecordReaderTest, FilesFollowEachOtherAndTheTestPartHasItsOwn) {
  files_.write("a.data", "39, Private, <=50K\n50, ?, >50K\n\n");
  files_.write("b.data", "");
  files_.write("adult.test", "|1x3 Cross validator\n25, Private, <=50K.\n28, , >50K.\n\n");
  const DataSet data = read(kAdult);
  EXPECT_THAT(labels(data), ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(data.part[2], Part::kTest);
  EXPECT_EQ(data.part[3], Part::kTest);
  EXPECT_EQ(ids(data, 1)[1], ids(data, 3)[1]);  // both are missing
  EXPECT_EQ(ids(data, 0)[1], ids(data, 2)[1]);
  EXPECT_EQ(ids(data, 2)[0], data.columns[0].keys.find(std::string_view("1")));  // rare
}

TEST_F(RecordReaderTest, ASplitOfTheTrainingFileGoesByItsRecords) {
  std::string text;
  for (int record = 0; record < 50; ++record)
    text += record == 0 ? "1, 2, <=50K\n" : "1, 2, >50K\n";
  files_.write("a.data", text);
  files_.write("b.data", text);
  files_.write("adult.test", "1, 2, >50K.\n1, 2, <=50K.\n");
  const DataSet data = read(kAdult);
  for (std::size_t record = 0; record < 100; ++record) {
    EXPECT_EQ(data.part[record] == Part::kValidation, splitmix64(record) % 10 < 2);
    EXPECT_NE(data.part[record], Part::kTest);
  }
}

TEST_F(RecordReaderTest, LabelsMayBeTextsOfOneSideAlone) {
  const std::string job = R"(
[data]
file = "a"
label = "readmitted"
negative = ["NO"]
[ids.patient]
column = "patient_nbr"
[split]
by = ["patient_nbr"]
)";
  files_.write("a", "patient_nbr,readmitted\n7,NO\n8,>30\n7,<30\n");
  const DataSet data = read(job);
  EXPECT_THAT(labels(data), ElementsAre(0, 1, 1));
  EXPECT_THAT(data.part, ElementsAre(split_part(7), split_part(8), split_part(7)));
}

TEST_F(RecordReaderTest, AColumnThatIsNoIdMaySplit) {
  const std::string job = R"(
[data]
file = "a"
label = "y"
range = [0, 1]
[ids.x]
column = "x"
[split]
by = ["who", "x"]
)";
  files_.write("a", "who,x,y\n5,9,1\nann,9,0\nann,9,1\n");
  const DataSet data = read(job);
  EXPECT_EQ(data.part[0], split_part(pair_key(5, 9)));
  EXPECT_EQ(data.part[1], data.part[2]);
  EXPECT_EQ(data.samples.stride, 2);
}

constexpr const char* kTags = R"(
[data]
file = "a"
label = "y"
range = [1, 5]
[ids.item]
column = "item"
min_count = 1
[ids.tag]
file = "tags"
key = "item"
of = "item"
column = "tags"
keys = "string"
separator = "|"
[ids.word]
column = "words"
keys = "string"
separator = " "
)";

TEST_F(RecordReaderTest, BrokenRecordsAreLeftOutWholly) {
  files_.write("a",
               "item,words,y\n1,a b,5\nx,c,1\n2,d,6\n3,e\n4,f,2\n5,\"g\"h,2\n6,i,one\n7,b a,3\n");
  files_.write("tags", "item,tags\n1,p|q\n1,r\n7,q\n4,s,t\n");
  const DataSet data = read(kTags, 7);
  EXPECT_EQ(data.left_out.total(), 7);
  EXPECT_THAT(labels(data), ElementsAre(5, 2, 3));
  const IdColumn& word = data.column("word");
  EXPECT_EQ(word.keys.size(), 3);  // a, b, f
  EXPECT_THAT(word.lists.ids, ElementsAre(0, 1, 2, 1, 0));
  EXPECT_THAT(word.lists.splits, ElementsAre(0, 2, 3, 5));
  EXPECT_EQ(data.column("tag").keys.size(), 2);  // p, q
}

TEST_F(RecordReaderTest, OneBrokenRecordTooManyIsTheError) {
  files_.write("a", "item,words,y\n1,a b,5\nx,c,1\n2,d,6\n");
  files_.write("tags", "item,tags\n1,p|q\n1,r\n");
  EXPECT_EQ(
      refused(kTags, 0),
      "a:3:1: 'item' must be an integer of 64 bits, or any text with keys = \"string\", got 'x'");
  EXPECT_EQ(refused(kTags, 1),
            "a:4:5: 'y' must be from 1 to 5, the job's data.range, got '6'; 1 broken before it is "
            "left out, and no more may be");
  EXPECT_EQ(refused(kTags, 2),
            "tags:3:1: 'item' must be a key that stands in no other record, got '1'");
}

TEST_F(RecordReaderTest, ASideTableHasAnEmptyListForTheRareRow) {
  // Record 2 is for the test.
  files_.write("a", "item,words,y\n1,,5\n2,,5\n3,,5\n");
  files_.write("tags", "item,tags\n1,p|q\n3,q\n");
  const DataSet data = read(kTags);
  const IdColumn& tag = data.column("tag");
  EXPECT_EQ(data.column("item").keys.num_rows(), 3);
  EXPECT_THAT(tag.lists.splits, ElementsAre(0, 2, 2, 2));
  EXPECT_EQ(tag.lists.without, 1);
  EXPECT_EQ(tag.keys.size(), 2);
}

TEST_F(RecordReaderTest, AFileOfCommentsHasNoRecords) {
  files_.write("a.data", "| nothing\n");
  files_.write("b.data", "");
  files_.write("adult.test", "1, 2, >50K.\n");
  EXPECT_EQ(refused(kAdult), "'a.data' must have records, got none");
}

TEST_F(RecordReaderTest, SaysWhichLabelIsUnknown) {
  files_.write("a.data", "1, 2, 50K\n");
  files_.write("b.data", "");
  EXPECT_EQ(
      refused(kAdult),
      "a.data:1:7: '3' must be one of the texts of data.positive and data.negative, got '50K'");
}

TEST_F(RecordReaderTest, TheLabelIsNothingThatTheModelSees) {
  files_.write("a.csv", "y,a,b\n0,1,2\n1,3,4\n");
  const std::string data = "[data]\nfile = \"a.csv\"\nlabel = \"y\"\nrange = [0, 1]\n";
  const std::string rule = " must not have the label's column 'y', got ";
  EXPECT_EQ(refused(data + "[ids.f]\ncolumns = [\"1-3\"]\n"),
            "'a.csv': ids.f.columns" + rule + "\"1\"");
  EXPECT_EQ(refused(data + "[ids.f]\ncolumn = \"y\"\n"), "'a.csv': ids.f.column" + rule + "\"y\"");
  EXPECT_EQ(refused(data + "numbers = [\"b\", 1]\n[ids.f]\ncolumns = [\"a\"]\n"),
            "'a.csv': data.numbers" + rule + "\"1\"");
  EXPECT_EQ(read(data + "where = { y = \">= 0\" }\n[ids.f]\ncolumns = [\"2-3\"]\n").samples.size(),
            2);
}

TEST_F(RecordReaderTest, AColumnThatIsCalledAsARangeIsGivenByItsNumber) {
  const std::string job = R"(
[data]
file = "a.csv"
label = "y"
range = [0, 1]
[ids.field]
)";
  files_.write("a.csv", "y,a,b,x\n0,p,q,r\n1,p,q,s\n");
  const DataSet ranged = read(job + "columns = [\"2-3\", \"x\"]\n");
  EXPECT_EQ(ranged.columns[0].width, 3);
  EXPECT_EQ(ranged.columns[0].keys.text(0), "a=p");
  EXPECT_EQ(ranged.columns[0].keys.text(2), "x=r");
  files_.write("a.csv", "y,a,2-3,x\n0,1,q,r\n1,1,q,s\n");
  const std::string rule =
      "'a.csv': \"2-3\" must be a range of columns alone, got a header in which column 3 has this "
      "name; its number names the column";
  EXPECT_EQ(refused(job + "columns = [\"2-3\", \"x\"]\n"), rule);
  EXPECT_EQ(refused("[data]\nnumbers = [\"2-3\"]\n" + job.substr(8) + "columns = [\"x\"]\n"), rule);
  const DataSet numbered = read(job + "columns = [3, \"x\"]\n");
  EXPECT_EQ(numbered.columns[0].width, 2);
  EXPECT_EQ(numbered.columns[0].keys.text(0), "2-3=q");
  EXPECT_EQ(spec_of(job + "columns = [\"2-4\"]\nbuckets = [\"2-3\"]\n").ids[0].buckets,
            (std::vector<std::string>{"2", "3"}));
}

TEST(RecordsSpec, SaysWhichRuleIsBroken) {
  const auto refused = [](const std::string& ids, const std::string& rest = "",
                          const std::string& label = "range = [0, 1]") {
    const std::string job =
        "[data]\nfile = \"a\"\nlabel = \"y\"\n" + label + "\n[ids.x]\n" + ids + "\n" + rest + "\n";
    return refusal<ValueError>("", [&] { spec_of(job); });
  };
  EXPECT_EQ(refused("columns = []"),
            "job.toml:6: ids.x.columns must be a list of one column or more, got []");
  EXPECT_EQ(refused("columns = [0]"),
            "job.toml:6: ids.x.columns must be a list of columns: names, numbers from 1 or "
            "\"FIRST-LAST\", got [ 0 ]");
  EXPECT_EQ(
      refused("columns = [\"1-3\"]\nbuckets = [4]"),
      "job.toml:7: ids.x.buckets must be some of the columns of these ids (1, 2, 3), got \"4\"");
  EXPECT_EQ(
      refused("columns = [1]\nbuckets = [1]\nkeys = \"integer\""),
      "job.toml:8: ids.x.keys must be \"string\" where numbers become buckets, got 'integer'");
  EXPECT_EQ(
      refused("columns = [1]\nseparator = \"|\""),
      "job.toml:7: ids.x.separator must be absent where there are columns or buckets, got '|'");
  EXPECT_EQ(refused("column = 1\nhash = 10\nmin_count = 2"),
            "job.toml:8: ids.x.min_count must be absent where keys are hashed, got 2");
  EXPECT_EQ(refused("column = 1\nhash = 0"),
            "job.toml:7: ids.x.hash must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(refused("column = 1", "[split]\nby = [1, 2, 3]"),
            "job.toml:8: split.by must be at most two ids or columns, got [ 1, 2, 3 ]");
  EXPECT_EQ(refused("column = 1", "[split]\ntest_file = \"t\"\nvalidation = 0.25"),
            "job.toml:9: split.validation must be 0, 0.1, 0.2, ... or 0.9, got 0.25");
  EXPECT_EQ(
      refused("column = 1", "[split]\nvalidation = 0.2"),
      "job.toml:8: split.validation must be left out where hashes deal the records, a tenth of "
      "which is the validation part");
  EXPECT_EQ(refused("column = 1", "", "positive = [\"a\"]\nnegative = [\"a\"]"),
            "job.toml:5: data.negative must not name what is positive, got \"a\"");
}

constexpr const char* kTimed = R"(
[data]
file = "timed.csv"
label = "label"
range = [0, 9]
[ids.word]
column = "word"
keys = "string"
min_count = 2
[split]
time = "when"
test = 0.2
validation = 0.2
)";

// Words by time: b1 a2 a3 c4 b5 d5 c6 e7 f8 f9.
constexpr const char* kTimes =
    "label,word,when\n0,b,5\n1,a,2\n2,d,5\n3,a,3\n4,e,7\n5,c,4\n6,b,1\n7,c,6\n8,f,8\n9,f,9\n";

TEST_F(RecordReaderTest, TheLatestRecordsAreTheTestPartAndThoseBeforeThemTheValidationPart) {
  files_.write("timed.csv", kTimes);
  const DataSet data = read(kTimed);
  // Two of ten records are a part: times 8 and 9 test, 6 and 7 validation.
  using enum Part;
  EXPECT_THAT(data.part, ElementsAre(kTraining, kTraining, kTraining, kTraining, kValidation,
                                     kTraining, kTraining, kValidation, kTest, kTest));
  EXPECT_THAT(labels(data), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(RecordReaderTest, KeysCountInWhatTrainsByTime) {
  files_.write("timed.csv", kTimes);
  // b and a are in two training records each; c is in one and in the validation part.
  const DataSet data = read(kTimed);
  EXPECT_EQ(data.columns[0].keys.size(), 2);
  EXPECT_THAT(ids(data, 0), ElementsAre(0));
  EXPECT_THAT(ids(data, 1), ElementsAre(1));
  EXPECT_THAT(ids(data, 5), ElementsAre(2));  // rare
  const DataSet both = read(std::string(kTimed) + "train_on_validation = true\n");
  EXPECT_EQ(both.columns[0].keys.size(), 3);
  EXPECT_THAT(ids(both, 5), ElementsAre(2));
  EXPECT_THAT(ids(both, 2), ElementsAre(3));
}

TEST_F(RecordReaderTest, ListsCountInWhatTrainsByTime) {
  files_.write("timed.csv", "label,word,when\n0,x|y,2\n1,y|x|x,9\n2,z|y,1\n");
  const std::string lists = R"(
[data]
file = "timed.csv"
label = "label"
range = [0, 9]
[ids.word]
column = "word"
keys = "string"
separator = "|"
min_count = 2
[split]
time = "when"
test = 0.34
)";
  const DataSet data = read(lists);
  EXPECT_EQ(data.columns[0].keys.size(), 1);  // y; x is once in what trains
  EXPECT_EQ(data.part[1], Part::kTest);
}

TEST_F(RecordReaderTest, OfEqualTimesTheEarlierInTheFileIsEarlier) {
  files_.write("timed.csv", "label,word,when\n0,b,5\n1,a,5\n2,d,5\n3,a,5\n4,e,5\n");
  using enum Part;
  EXPECT_THAT(read(kTimed).part, ElementsAre(kTraining, kTraining, kTraining, kValidation, kTest));
}

TEST_F(RecordReaderTest, TimesAreAllIntegersOrAllDates) {
  files_.write("timed.csv", "label,word,when\n0,b,2024-01-05\n1,a,2024-01-02T10:00Z\n2,a,7\n");
  EXPECT_EQ(refused(kTimed),
            "timed.csv:4:5: 'when' must be a date, as the times before it, which integers do not "
            "follow, got '7'");
  files_.write("timed.csv", "label,word,when\n0,b,5\n1,a,2024-01-02\n");
  EXPECT_EQ(refused(kTimed),
            "timed.csv:3:5: 'when' must be an integer, as the times before it, which dates do not "
            "follow, got '2024-01-02'");
  EXPECT_EQ(read(kTimed, 1).part.size(), 1u);
}

TEST_F(RecordReaderTest, AKeyThatOthersMakeMeaninglessIsToBeLeftOut) {
  const std::string job = kAdult, file = "test_file = \"adult.test\"\n";
  EXPECT_EQ(refused_spec(std::string(job).replace(job.find("[ids"), 0, "range = [0, 1]\n")),
            "job.toml:10: data.range must be left out where 'positive' and 'negative' say what "
            "texts are labels");
  EXPECT_EQ(refused_spec(std::string(job).replace(job.find("[ids"), 0, "missing = \"?\"\n")),
            "job.toml:10: data.missing must be left out where there are no 'numbers'");
  EXPECT_EQ(refused_spec(std::string(job).replace(job.find(file), file.size(), "")),
            "job.toml:14: split.validation must be left out where hashes deal the records, a tenth "
            "of which is the validation part");
  EXPECT_EQ(refused_spec(job + "test = 0.2\n"),
            "job.toml:16: split.test must be left out where no 'time' deals the records");
}

TEST_F(RecordReaderTest, ASplitByTimeIsNoOther) {
  const std::string job = kTimed;
  EXPECT_EQ(refused_spec(job + "salt = 3\n"),
            "job.toml:14: split.salt must be left out where 'time' deals the records");
  EXPECT_EQ(refused_spec(job + "by = [\"word\"]\n"),
            "job.toml:14: split.by must be left out where 'time' deals the records");
  EXPECT_NE(refused_spec(std::string(job).replace(job.find("test = 0.2"), 10, "test = 0.9"))
                .find("split.validation must be a share that leaves records for training"),
            std::string::npos);
}

constexpr const char* kNumbers = R"(
[data]
file = "people.csv"
label = "label"
range = [0, 1]
numbers = ["height", 4]
missing = "?"
[ids.place]
column = "place"
keys = "string"
)";

TEST_F(RecordReaderTest, NumbersStandBehindTheIdsOfASample) {
  files_.write("people.csv", "label,place,height,weight\n1,a,1.7,1700000059\n0,b,,-3e2\n1,a,?,0\n");
  const DataSet data = read(kNumbers);
  EXPECT_EQ(data.numbers, 2);
  EXPECT_EQ(data.samples.stride, 6);
  const auto number = [&](std::int64_t sample, std::int64_t i) {
    return data.samples.number(sample, data.number_cell(i));
  };
  EXPECT_EQ(number(0, 0), 1.7);
  EXPECT_EQ(number(0, 1), 1700000059);
  EXPECT_TRUE(std::isnan(number(1, 0)));
  EXPECT_EQ(number(1, 1), -300);
  EXPECT_TRUE(std::isnan(number(2, 0)));
  EXPECT_THAT(labels(data), ElementsAre(1, 0, 1));
}

TEST_F(RecordReaderTest, WhatIsNoNumberBreaksItsRecordAlone) {
  files_.write("people.csv",
               "label,place,height,weight\n1,a,1.75,70\n0,b,tall,9\n1,c,2,1e99\n0,a,3,4\n");
  EXPECT_EQ(refused(kNumbers), "people.csv:3:5: 'height' must be a number, got 'tall'");
  const DataSet data = read(kNumbers, 2);
  EXPECT_EQ(data.samples.size(), 2);
  EXPECT_EQ(data.columns[0].keys.size(), 1);
  EXPECT_EQ(data.samples.number(1, data.number_cell(1)), 4);
  EXPECT_NE(refused_spec(std::string(kNumbers).replace(std::string(kNumbers).find("\"height\""), 8,
                                                       "\"label\""))
                .find("data.numbers must not have the label's column, got \"label\""),
            std::string::npos);
}

TEST_F(RecordReaderTest, OtherNumbersAreOtherData) {
  files_.write("people.csv", "label,place,height,weight\n1,a,1.75,70\n0,b,2,3\n");
  const auto digest = [&] { return data_digests(read(kNumbers)).at("numbers"); };
  const std::string before = digest();
  files_.write("people.csv", "label,place,height,weight\n1,a,1.75,70\n0,b,2,4\n");
  EXPECT_NE(digest(), before);
  EXPECT_FALSE(data_digests(DataSet()).contains("numbers"));
}

constexpr const char* kLimits = R"(
[data]
file = "people.csv"
label = "label"
range = [0, 1]
[ids.field]
columns = ["age", "place"]
limits.age = [18, 30.5]
)";

TEST_F(RecordReaderTest, LimitsCutNumbersIntoCategories) {
  files_.write("people.csv",
               "label,age,place\n1,17.9,a\n0,18,a\n1,30,a\n1,30.5,a\n0,,a\n0,1e3,a\n1,-4,a\n");
  const DataSet data = read(kLimits);
  std::vector<std::string> keys;
  for (std::int64_t s = 0; s < data.samples.size(); ++s)
    keys.emplace_back(data.columns[0].keys.text(ids(data, s)[0]));
  EXPECT_THAT(keys, ElementsAre("age=<18", "age=18..30.5", "age=18..30.5", "age=>=30.5",
                                "age=", "age=>=30.5", "age=<18"));
  files_.write("people.csv", "label,age,place\n1,old,a\n");
  EXPECT_EQ(refused(kLimits), "people.csv:2:3: 'age' must be a number or empty, got 'old'");
}

TEST_F(RecordReaderTest, LimitsRiseAndAreOfTheirIds) {
  const auto with = [](const std::string& limits) {
    return std::string(kLimits).replace(std::string(kLimits).find("limits.age = [18, 30.5]"), 23,
                                        limits);
  };
  EXPECT_NE(
      refused_spec(with("limits.age = [2, 2]")).find("must be a list of one rising number or more"),
      std::string::npos);
  EXPECT_NE(refused_spec(with("limits.size = [2]"))
                .find("ids.field.limits must be some of the columns of these ids (age, place), got "
                      "\"size\""),
            std::string::npos);
  EXPECT_NE(refused_spec(with("limits.age = [2]\nbuckets = [\"age\"]"))
                .find("must name no column that buckets names, got \"age\""),
            std::string::npos);
}

}  // namespace
}  // namespace embertable::jobs
