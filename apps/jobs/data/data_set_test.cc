#include "apps/jobs/data/data_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "embertable/errors.h"
#include "testing/source_path.h"
#include "testing/tiny_job.h"

namespace embertable::jobs {
namespace {

using testing::ElementsAre;

class DataSetTest : public testing::Test {
 protected:
  DataSetTest() { write_tiny_data(files_); }
  DataSet read(const std::vector<Change>& changes = {}) {
    return read_data(tiny_records(changes), {.root = files_.path()});
  }
  std::string refused(const std::vector<Change>& changes = {}) {
    return refusal<ValueError>(files_.path(), [&] { read(changes); });
  }
  static std::vector<std::int32_t> list(const IdColumn& column, std::size_t index) {
    return {column.lists.ids.begin() + column.lists.splits[index],
            column.lists.ids.begin() + column.lists.splits[index + 1]};
  }
  TemporaryFiles files_;
};

TEST_F(DataSetTest, NumbersKeysAsTheyCome) {
  const DataSet data = read();
  ASSERT_EQ(data.samples.size(), 200);
  EXPECT_EQ(data.samples.stride, 3);
  const IdColumn& user = data.column("user");
  const IdColumn& item = data.column("item");
  EXPECT_EQ(user.keys.size(), 20);
  EXPECT_EQ(item.keys.integer(3), 16);
  EXPECT_EQ(data.samples.id(53, user.cell), 5);
  EXPECT_EQ(data.samples.id(53, item.cell), 3);
  EXPECT_EQ(data.samples.label(53), 4);  // 1 + (5 + 3) % 5
}

TEST_F(DataSetTest, DealsSamplesByTheKeysOfTheFile) {
  const DataSet data = read({"split.salt=3"});
  for (std::int64_t s = 0; s < data.samples.size(); ++s) {
    EXPECT_EQ(data.part[s], split_part(pair_key(100 + s / 10, 7 + 3 * (s % 10)), 3));
  }
  const Samples all = data.select({Part::kTest, Part::kValidation, Part::kTraining});
  EXPECT_EQ(all.cells, data.samples.cells);
  const Samples test = data.select({Part::kTest});
  EXPECT_EQ(test.size(), std::count(data.part.begin(), data.part.end(), Part::kTest));
  EXPECT_EQ(split_part(pair_key(100 + test.id(0, 0), 7 + 3 * test.id(0, 1)), 3), Part::kTest);
}

TEST_F(DataSetTest, MayDealSamplesByTheirNumberOrOneKey) {
  EXPECT_EQ(read({"split.by=[]"}).part[2], Part::kTest);
  EXPECT_EQ(read({"split.by=[\"user\"]"}).part[17], split_part(101));
}

TEST_F(DataSetTest, JoinsListsByTheKeysOfAnother) {
  const DataSet data = read();
  const IdColumn& tag = data.column("tag");
  EXPECT_EQ(tag.owner, data.column("item").cell);
  EXPECT_EQ(tag.keys.size(), 4);
  ASSERT_EQ(tag.lists.splits.size(), 11u);
  EXPECT_THAT(list(tag, 0), ElementsAre(0));
  EXPECT_THAT(list(tag, 6), ElementsAre(0, 1, 2));
  EXPECT_THAT(list(tag, 9), ElementsAre());
  EXPECT_EQ(tag.lists.without, 1);
  EXPECT_EQ(tag.lists.longest, 4);
}

TEST_F(DataSetTest, MayNumberKeysInRisingOrder) {
  files_.write_compressed("ratings.csv.gz", "user,item,rating\n5,28,1\n3,7,2\n4,7,3\n");
  const DataSet data =
      read({"ids.user.order=sorted", "ids.item.order=sorted", "ids.tag.order=sorted"});
  const IdColumn& user = data.column("user");
  EXPECT_THAT((std::vector{data.samples.id(0, user.cell), data.samples.id(1, user.cell),
                           data.samples.id(2, user.cell)}),
              ElementsAre(2, 0, 1));
  EXPECT_EQ(user.keys.integer(2), 5);
  EXPECT_EQ(user.keys.find(std::int64_t{4}), 1);
  EXPECT_EQ(data.samples.label(1), 2);
  EXPECT_THAT(list(data.column("tag"), 0), ElementsAre(0));           // item 7
  EXPECT_THAT(list(data.column("tag"), 1), ElementsAre(0, 1, 2, 3));  // item 28
}

TEST_F(DataSetTest, ListsMayStandInTheDataFile) {
  files_.write_compressed("ratings.csv.gz", "user,item,rating,tags\n5,28,1,x|y\n3,7,2,\n4,7,3,y\n");
  const DataSet data =
      read({"ids.tag={ column = \"tags\", keys = \"string\", separator = \"|\" }"});
  const IdColumn& tag = data.column("tag");
  EXPECT_EQ(data.samples.stride, 4);
  for (std::int32_t s = 0; s < 3; ++s) EXPECT_EQ(data.samples.id(s, tag.owner), s);
  EXPECT_THAT(list(tag, 0), ElementsAre(0, 1));
  EXPECT_THAT(list(tag, 1), ElementsAre());
  EXPECT_THAT(list(tag, 2), ElementsAre(1));
}

TEST_F(DataSetTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(refused({"data.range=[1, 4]"}),
            "ratings.csv.gz:6:8: 'rating' must be from 1 to 4, the job's data.range, got '5'");
  EXPECT_EQ(refused({"ids.user.column=usre"}),
            "'ratings.csv.gz' has no column 'usre'; the nearest is 'user'");
  EXPECT_EQ(refused({"data.where.rating=> 5", "data.where.user=filled"}),
            "'ratings.csv.gz' must have records that data.where accepts, got none by rating = \"> "
            "5\", user = \"filled\"");
  files_.write("tags.csv", "item;tags\n7;a\n10;b\n7;c\n");
  EXPECT_EQ(refused(),
            "tags.csv:4:1: 'item' must be a key that stands in no other record, got '7'");
  EXPECT_EQ(refused({"ids.tag.keys=integer"}),
            "tags.csv:2:3: 'tags' must be a list of integers separated by '|', got 'a'");
  files_.write_compressed("ratings.csv.gz", "user,item,rating\n");
  EXPECT_EQ(refused(), "'ratings.csv.gz' must have records, got none");
}

TEST_F(DataSetTest, HasHashesOfItsContents) {
  const std::map<std::string, std::string> digests = data_digests(read());
  EXPECT_EQ(digests.size(), 4u);
  EXPECT_EQ(data_digests(read({"strategy.replicas=2"})), digests);
  // A job with changes names its columns in another order.
  EXPECT_EQ(data_digests(read_data(records_of(parse_job(tiny_job({"seed=2"}).text, "job.toml")),
                                   {.root = files_.path()})),
            digests);
  const auto changed = [&](const DataSet& data) {
    std::vector<std::string> names;
    for (const auto& [name, digest] : data_digests(data)) {
      if (digests.at(name) != digest) names.push_back(name);
    }
    return names;
  };
  EXPECT_THAT(changed(read({"split.salt=3"})), ElementsAre("samples"));
  files_.write("tags.csv", "item;tags\n7;t0\n10;t0|t1|t2|t3\n");
  EXPECT_THAT(changed(read()), ElementsAre("ids tag"));
}

TEST(GoodbooksData, HasThePublishedParts) {
  const std::string root = source_path("examples/data");
  const Job job = read_job(source_path("examples/jobs/goodbooks-genres.toml"));
  const DataSet data = read_data(records_of(job), {.root = root});
  EXPECT_EQ(data.samples.size(), 981'756);
  EXPECT_EQ(data.column("user").keys.size(), 53'424);
  EXPECT_EQ(data.column("book").keys.size(), 10'000);
  EXPECT_EQ(data.column("genre").keys.size(), 604);
  EXPECT_EQ(data.select({Part::kTest}).size(), 98'010);
  EXPECT_EQ(data.select({Part::kValidation}).size(), 98'360);
}

}  // namespace
}  // namespace embertable::jobs
