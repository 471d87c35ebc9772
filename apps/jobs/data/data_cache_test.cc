#include "apps/jobs/data/data_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <span>
#include <thread>

#include "base/hash.h"
#include "testing/sanitized.h"
#include "testing/tiny_job.h"

namespace embertable::jobs {
namespace {

class DataCacheTest : public testing::Test {
 protected:
  DataCacheTest() { write_tiny_data(files_); }
  DataOptions options() const { return {.root = files_.path(), .cache = files_.path("cache")}; }
  DataSet read(const std::vector<Change>& changes = {}) const {
    return read_data(tiny_records(changes), options());
  }
  bool is_cached(const std::vector<Change>& changes = {}) const {
    return read_cached(tiny_records(changes), options()).has_value();
  }
  std::string content() const {
    std::ifstream file(files_.path("cache/records.bin"), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  TemporaryFiles files_;
};

TEST(CacheOf, StandsBesideTheRun) {
  EXPECT_EQ(cache_of("a/run"), "a/run.cache");
  EXPECT_EQ(cache_of("a/run/"), "a/run.cache");
  EXPECT_EQ(cache_of("a/b/../run"), "a/run.cache");
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(cache_of("."), here.string() + ".cache");
  EXPECT_EQ(cache_of(".."), here.parent_path().string() + ".cache");
}

TEST_F(DataCacheTest, GivesTheSameDataAgain) {
  EXPECT_FALSE(is_cached());
  const DataSet fresh = read({"ids.user.min_count=2"});
  ASSERT_TRUE(is_cached({"ids.user.min_count=2"}));
  const DataSet cached = read({"ids.user.min_count=2"});
  EXPECT_EQ(data_digests(cached), data_digests(fresh));
  EXPECT_EQ(cached.samples.cells, fresh.samples.cells);
  EXPECT_EQ(cached.samples.stride, fresh.samples.stride);
  EXPECT_EQ(cached.part, fresh.part);
  ASSERT_EQ(cached.columns.size(), fresh.columns.size());
  for (std::size_t i = 0; i < fresh.columns.size(); ++i) {
    EXPECT_EQ(cached.columns[i].name, fresh.columns[i].name);
    EXPECT_EQ(cached.columns[i].cell, fresh.columns[i].cell);
    EXPECT_EQ(cached.columns[i].width, fresh.columns[i].width);
    EXPECT_EQ(cached.columns[i].owner, fresh.columns[i].owner);
    EXPECT_EQ(cached.columns[i].lists.longest, fresh.columns[i].lists.longest);
    EXPECT_EQ(cached.columns[i].lists.without, fresh.columns[i].lists.without);
    EXPECT_TRUE(cached.columns[i].keys.id_map() == fresh.columns[i].keys.id_map());
  }
}

TEST_F(DataCacheTest, IsOfOneJobAlone) {
  read();
  EXPECT_TRUE(is_cached());
  EXPECT_TRUE(is_cached({"schedule.epochs=9", "tables.user.dim=5"}));
  for (const char* change :
       {"data.range=[0, 5]", "ids.user.order=sorted", "ids.user.min_count=1", "ids.tag.separator=x",
        "ids.user.missing=x", "split.salt=1", "split.by=[]", "split.train_on_validation=false"})
    EXPECT_FALSE(is_cached({change})) << change;
}

TEST_F(DataCacheTest, IsOfTheFilesAsTheyWere) {
  read();
  const std::string tags = files_.path("tags.csv");
  const auto time = std::filesystem::last_write_time(tags);
  std::filesystem::last_write_time(tags, time + std::chrono::seconds(1));
  EXPECT_FALSE(is_cached());
  read();
  EXPECT_TRUE(is_cached());
  std::ofstream(tags, std::ios::app) << "\n";
  EXPECT_FALSE(is_cached());
}

TEST_F(DataCacheTest, IsNotOfOtherContentsOfTheSameSizeAndTime) {
  read();
  const std::string tags = files_.path("tags.csv");
  const auto time = std::filesystem::last_write_time(tags);
  std::ifstream file(tags, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  content[content.find("t1")] = 'u';
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a clock of files may be coarse
  files_.write("tags.csv", content);
  std::filesystem::last_write_time(tags, time);
  EXPECT_FALSE(is_cached());
  read();
  // Another file in its place, as a copy that keeps its times leaves it.
  files_.write("other.csv", content);
  std::filesystem::last_write_time(files_.path("other.csv"), time);
  std::filesystem::rename(files_.path("other.csv"), tags);
  std::filesystem::last_write_time(tags, time);
  EXPECT_FALSE(is_cached());
}

TEST_F(DataCacheTest, CellsOutOfRangeAreReadAnew) {
  const auto digests = data_digests(read());
  const std::string whole = content();
  // Whoever writes the file can seal it: every number changes in turn, with a hash that fits.
  for (std::size_t at = 56; at + 4 + 32 <= whole.size(); at += kSanitized ? 41 : 7) {
    std::string changed = whole.substr(0, whole.size() - 32);
    for (const char byte : {'\x7f', '\xff'}) {
      std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(at), 4, byte);
      files_.write("cache/records.bin", changed + hash_hex(std::as_bytes(std::span(changed))));
      const std::optional<DataSet> cached = read_cached(tiny_records(), options());
      if (!cached) continue;
      for (const IdColumn& column : cached->columns) {
        for (std::int64_t s = 0; column.cell >= 0 && s < cached->samples.size(); ++s) {
          ASSERT_GE(cached->samples.id(s, column.cell), 0) << at;
          ASSERT_LT(cached->samples.id(s, column.cell), column.keys.num_rows()) << at;
        }
        for (const std::int32_t id : column.lists.ids) ASSERT_LT(id, column.keys.num_rows()) << at;
      }
    }
  }
  EXPECT_EQ(data_digests(read()).size(), digests.size());
}

TEST_F(DataCacheTest, ADamagedOneIsReadAnew) {
  const auto digests = data_digests(read());
  const std::string whole = content();
  for (std::size_t place = 0; place < whole.size();
       place += 1 + whole.size() / (kSanitized ? 23 : 97)) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x40);
    files_.write("cache/records.bin", damaged);
    EXPECT_FALSE(is_cached()) << place;
    files_.write("cache/records.bin", whole.substr(0, place));
    EXPECT_FALSE(is_cached()) << place;
  }
  files_.write("cache/records.bin", whole + "x");
  EXPECT_FALSE(is_cached());
  EXPECT_EQ(data_digests(read()), digests);
  EXPECT_EQ(content(), whole);
}

TEST_F(DataCacheTest, LeavesNothingButItself) {
  files_.write("file", "");
  read();
  read({"split.salt=1"});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(files_.path("cache")))
    ++files;
  EXPECT_EQ(files, 1u);
}

TEST_F(DataCacheTest, WhatAKilledProcessLeftIsWrittenOver) {
  std::filesystem::create_directory(files_.path("cache"));
  files_.write("cache/records.bin.new", std::string(1 << 20, 'x'));
  read();
  EXPECT_TRUE(is_cached());
  EXPECT_FALSE(std::filesystem::exists(files_.path("cache/records.bin.new")));
}

/// Caches a number, with a call while it is written.
class CacheOfANumber {
 public:
  CacheOfANumber(const TemporaryFiles& files, const std::string& contents)
      : cache_(files.path("cache"), "number", contents) {}

  template <class Within>
  int get(int number, const Within& within) const {
    return cache_.get<int>([=] { return number; },
                           [&](auto& file, int& value) {
                             file(value);
                             within(file);
                           },
                           [](int) { return true; });
  }
  int get(int number) const {
    return get(number, [](auto&) {});
  }

 private:
  const DataCache cache_;
};

TEST_F(DataCacheTest, WithoutMemoryToWriteItDataAreNotKept) {
  const CacheOfANumber cache(files_, "a");
  EXPECT_EQ(cache.get(1, [](auto&) { throw std::bad_alloc(); }), 1);
  EXPECT_TRUE(std::filesystem::is_empty(files_.path("cache")));
  EXPECT_EQ(cache.get(2), 2);
  EXPECT_EQ(cache.get(3), 2);
}

TEST_F(DataCacheTest, OfWritersAtOnceTheFirstKeepsItsData) {
  const CacheOfANumber first(files_, "a"), second(files_, "b");
  EXPECT_EQ(first.get(1, [&](auto&) { EXPECT_EQ(second.get(2), 2); }), 1);
  EXPECT_EQ(first.get(3), 1);
  EXPECT_EQ(second.get(4), 4);
  EXPECT_EQ(second.get(5), 4);
}

TEST_F(DataCacheTest, WithoutAPlaceForItDataIsReadAllTheSame) {
  files_.write("file", "");
  const DataOptions nowhere = {.root = files_.path(), .cache = files_.path("file") + "/cache"};
  EXPECT_EQ(data_digests(read_data(tiny_records(), nowhere)),
            data_digests(read_data(tiny_records(), {.root = files_.path()})));
}

}  // namespace
}  // namespace embertable::jobs
