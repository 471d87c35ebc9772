#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/open_files_limit.h"
#include "testing/refusal.h"
#include "testing/saved_tables.h"
#include "testing/temporary_directory.h"

namespace embertable::checkpoint {
namespace {

constexpr std::int32_t kHosts[] = {1, 2, 3, 5};
constexpr Sharding kShardings[] = {Sharding::kDiv, Sharding::kMod};

/// A run with one saved step, opened.
struct Saved {
  explicit Saved(const Manifest& manifest)
      : directory(
            save(files, "/run", manifest, test_shards(manifest), test_caller(), {{"ads", "map"}})),
        reader(files, "/run") {}
  MemoryFiles files;
  std::filesystem::path directory;
  Reader reader;
};

/// What a read of rows of "video/momenta" or "video/counts" gives, by hand.
std::vector<float> expected_rows(const Progression& rows, std::int64_t slot, std::int64_t width) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows.count; ++i)
    for (std::int64_t column = 0; column < width; ++column)
      values.push_back(test_value(0, slot, rows[i], column));
  return values;
}

TEST(RoundTrip, AnyRowsOfAnyShardingAreRead) {
  for (const std::int32_t hosts : kHosts) {
    for (const Sharding sharding : kShardings) {
      const Saved saved(test_manifest(hosts, sharding));
      VariableReader momenta = saved.reader.variable("video/momenta");
      VariableReader counts = saved.reader.variable("video/counts");
      ASSERT_EQ(momenta.width(), 3);
      ASSERT_EQ(counts.width(), 1);
      for (std::int64_t first = 0; first < 13; ++first)
        for (std::int64_t step = 1; step <= 5; ++step)
          for (std::int64_t count = 0; first + (count - 1) * step < 13; ++count) {
            const Progression rows = {first, step, count};
            std::vector<float> wide(static_cast<std::size_t>(count) * 3);
            momenta.read(rows, wide.data(), 3);
            ASSERT_EQ(wide, expected_rows(rows, 1, 3));
            std::vector<float> narrow(count);
            counts.read(rows, narrow.data(), 1);
            ASSERT_EQ(narrow, expected_rows(rows, 2, 1));
          }
    }
  }
}

/// A table of two rows on each of 150 hosts, with a row-wise slot.
Manifest many_shards(Sharding sharding) {
  Manifest manifest = test_manifest(150, sharding);
  manifest.tables = {{.name = "wide",
                      .vocabulary_size = 300,
                      .dim = 2,
                      .combiner = "sum",
                      .optimizer = manifest.tables[0].optimizer,
                      .slots = {{"counts", true}}}};
  manifest.features.clear();
  return manifest;
}

TEST(RoundTrip, ShardsMayBeMoreThanFilesThatAProcessOpens) {
  for (const Sharding sharding : kShardings) {
    const Manifest manifest = many_shards(sharding);
    const TemporaryDirectory directory;
    save(local_files(), directory.path(), manifest, test_shards(manifest), {}, {});
    const OpenFilesLimit limit(64);
    const Reader reader(local_files(), directory.path());
    EXPECT_EQ(digest(reader), digest(test_digest_tables(manifest)));
    VariableReader rows = reader.variable("wide");
    for (const std::int64_t first : {0, 1, 150, 0})  // the parts are read again, and backwards
      for (std::int64_t row = 149; row >= 0; --row) {
        std::vector<float> read(2);
        rows.read((first + row) % 300, read);
        EXPECT_EQ(read[1], test_value(0, 0, (first + row) % 300, 1));
      }
  }
}

TEST(RoundTrip, RowsLandAtTheStride) {
  for (const Sharding sharding : kShardings) {
    const Saved saved(test_manifest(2, sharding));
    std::vector<float> out(10, -1);
    saved.reader.variable("video").read({5, 1, 2}, out.data(), 5);
    EXPECT_EQ(out, (std::vector<float>{500, 501, 502, -1, -1, 600, 601, 602, -1, -1}));
  }
}

TEST(RoundTrip, ManifestStateAndMapsComeBack) {
  const Manifest manifest = test_manifest(3, Sharding::kMod);
  const Saved saved(manifest);
  EXPECT_EQ(saved.directory, "/run/step_000000000007");
  EXPECT_EQ(step_directory("/run", 7), saved.directory);
  EXPECT_EQ(step_directory("/run", 1'234'567'890'123), "/run/step_1234567890123");
  EXPECT_EQ(refusal<ValueError>([] { step_directory("/run", -1); }), "step must be >= 0, got -1");
  EXPECT_EQ(saved.reader.directory(), saved.directory);
  EXPECT_EQ(saved.reader.caller_state(), test_caller());
  EXPECT_EQ(saved.reader.id_maps(), (std::map<std::string, std::string>{{"ads", "map"}}));
  Manifest read = saved.reader.manifest();
  read.files.clear();
  read.user_json = "null";
  EXPECT_EQ(read, manifest);
  EXPECT_NO_THROW(saved.reader.verify());
}

TEST(RoundTrip, ATensorOfNineAxesIsRefusedByName) {
  MemoryFiles files;
  const Manifest manifest = test_manifest();
  CallerState caller;
  caller.tensors["deep"] = {"U8", std::vector<std::int64_t>(9, 1), "x"};
  EXPECT_EQ(
      refusal<ValueError>([&] { save(files, "/run", manifest, test_shards(manifest), caller); }),
      "tensor 'deep': must have 8 axes or fewer, got 9");
  caller.tensors["deep"].shape.pop_back();
  save(files, "/run", manifest, test_shards(manifest), caller);
  EXPECT_EQ(Reader(files, "/run").caller_state(), caller);
}

TEST(RoundTrip, HostsWithoutRowsHaveNoFile) {
  const Saved saved(test_manifest(5));
  std::vector<std::string> names;
  for (const std::string& name : saved.files.copy()->list(saved.directory)) names.push_back(name);
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "blobs.safetensors", "id_maps.safetensors", "manifest.json",
          "t00000-video-00000-of-00005.safetensors", "t00000-video-00001-of-00005.safetensors",
          "t00000-video-00002-of-00005.safetensors", "t00000-video-00003-of-00005.safetensors",
          "t00000-video-00004-of-00005.safetensors",
          "t00001-ads_top_10_-00000-of-00005.safetensors",
          "t00001-ads_top_10_-00001-of-00005.safetensors", "tensors.safetensors"}));
}

TEST(RoundTrip, RowsBeyondOneBlockAndOneFillAreRead) {
  Manifest manifest = test_manifest(2, Sharding::kMod);
  // 1,500,000 floats = 6 MB a file: 6 blocks, 2 fills, rows across their borders.
  manifest.tables = {{.name = "big", .vocabulary_size = 1'000'000, .dim = 3, .combiner = "sum"}};
  manifest.features = {};
  const Saved saved(manifest);
  EXPECT_EQ(saved.reader.manifest().files[3].num_blocks(), 6);
  EXPECT_NO_THROW(saved.reader.verify());
  VariableReader variable = saved.reader.variable("big");
  std::vector<float> rows(3'000'000);
  variable.read(0, rows);
  for (std::int64_t i = 0; i < 3'000'000; ++i)
    ASSERT_EQ(rows[i], test_value(0, 0, i / 3, i % 3)) << i;
}

TEST(RoundTrip, DigestKnowsNeitherFilesNorSharding) {
  const std::string expected = digest(test_digest_tables(test_manifest()));
  for (const std::int32_t hosts : kHosts)
    for (const Sharding sharding : kShardings)
      EXPECT_EQ(digest(Saved(test_manifest(hosts, sharding)).reader), expected);
}

TEST(RoundTrip, DigestKnowsNoOrderOfTablesAndSlots) {
  std::vector<DigestTable> tables = test_digest_tables(test_manifest());
  const std::string expected = digest(tables);
  std::swap(tables[0].slots[0], tables[0].slots[1]);
  std::swap(tables[0].source.fill[1], tables[0].source.fill[2]);
  std::swap(tables[0], tables[1]);
  EXPECT_EQ(digest(tables), expected);
}

TEST(RoundTrip, DigestTakesEveryNaNForTheSameValue) {
  const auto digest_of = [](std::uint32_t bits) {
    const auto fill = [bits](std::int64_t, std::span<float> out) {
      std::ranges::fill(out, std::bit_cast<float>(bits));
    };
    return digest({{.name = "t", .dim = 3, .slots = {}, .source = {.rows = 2, .fill = {fill}}}});
  };
  EXPECT_EQ(digest_of(0xffc00000), digest_of(0x7fc00000));
  EXPECT_EQ(digest_of(0x7f800001), digest_of(0x7fc00000));
  EXPECT_NE(digest_of(0x7f800000), digest_of(0x7fc00000));
}

TEST(RoundTrip, DigestKnowsValuesNamesAndWidths) {
  const std::vector<DigestTable> tables = test_digest_tables(test_manifest());
  const std::string expected = digest(tables);
  EXPECT_NE(digest(test_digest_tables(test_manifest(), 1)), expected);
  auto changed = tables;
  changed[0].name = "video2";
  EXPECT_NE(digest(changed), expected);
  changed = tables;
  changed[0].slots[0].name = "velocities";
  EXPECT_NE(digest(changed), expected);
  changed = tables;
  changed[1].source.rows = 1;
  EXPECT_NE(digest(changed), expected);
}

TEST(RoundTrip, UnknownNamesAndRowsAreRefused) {
  const Saved saved(test_manifest());
  EXPECT_THROW(saved.reader.variable("video/none"), KeyError);
  VariableReader variable = saved.reader.variable("ads/top 10%");
  std::vector<float> out(3);
  EXPECT_THROW(variable.read(-1, std::span(out).first(1)), IndexError);
  EXPECT_THROW(variable.read(2, std::span(out).first(1)), IndexError);
  EXPECT_THROW(variable.read(0, out), IndexError);
  EXPECT_THROW(variable.read({0, 2, 2}, out.data(), 1), IndexError);
  EXPECT_NO_THROW(variable.read({1, 5, 1}, out.data(), 1));
}

TEST(RoundTrip, OneFileExplainsItself) {
  const Saved saved(test_manifest(3, Sharding::kMod));
  const std::string file = *saved.files.copy()->contents().at(
      "/run/step_000000000007/t00000-video-00001-of-00003.safetensors");
  const auto header = parse_safetensors(file, static_cast<std::int64_t>(file.size()), "f");
  EXPECT_EQ(header.metadata,
            (std::map<std::string, std::string>{{"embertable.format", "embertable-checkpoint 1"},
                                                {"embertable.step", "7"},
                                                {"embertable.table", "video"},
                                                {"embertable.vocabulary_size", "13"},
                                                {"embertable.shard", "1"},
                                                {"embertable.shards", "3"},
                                                {"embertable.first_row", "1"},
                                                {"embertable.row_step", "3"}}));
  // Rows 1, 4, 7, 10.
  EXPECT_EQ(header.tensors, (std::vector<StoredTensor>{{"video", "F32", {4, 3}, 4096, 48},
                                                       {"video/momenta", "F32", {4, 3}, 4144, 48},
                                                       {"video/counts", "F32", {4}, 4192, 16}}));
}

TEST(RoundTrip, EveryNameGivesASafeFileName) {
  Manifest manifest = test_manifest();
  manifest.features = {};
  manifest.tables.clear();
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string("a/b"),
        std::string("a\0b", 3), std::string("\n"), std::string("Ää"), std::string("A"),
        std::string("a"), std::string(1000, 'x'), std::string("manifest.json"),
        std::string("\u202etxt")})
    manifest.tables.push_back({.name = name, .vocabulary_size = 1, .dim = 1, .combiner = "sum"});
  const Saved saved(manifest);
  for (std::size_t i = 0; i < manifest.tables.size(); ++i) {
    float value = -1;
    saved.reader.variable(manifest.tables[i].name).read({0, 1, 1}, &value, 1);
    EXPECT_EQ(value, test_value(static_cast<std::int64_t>(i), 0, 0, 0));
    const std::string& file = saved.reader.manifest().files[i + 3].name;
    EXPECT_LE(file.size(), 120u);
    EXPECT_EQ(
        file.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."),
        std::string::npos);
  }
}

}  // namespace
}  // namespace embertable::checkpoint
