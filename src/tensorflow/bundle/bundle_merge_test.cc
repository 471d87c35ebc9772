// Parts of a checkpoint become one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "testing/bundles.h"
#include "testing/each_operation.h"
#include "testing/open_files_limit.h"
#include "testing/temporary_directory.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ShardedCases, Case86_GoldenCIsMergedFromTwoParts) {
  MemoryFiles files;
  merge_tensor_bundles(files, write_parts(files), "/c");
  const std::string index = hex_of_file(files, "/c.index");
  EXPECT_THAT(index, HasSubstr("08021a020801"));
  EXPECT_THAT(index, HasSubstr("08011208120208011202080218012808352cb9ff52"));
  EXPECT_EQ(files.contents().size(), 3u) << "parts are left";
  EXPECT_FALSE(files.stat("/c_temp"));
  const TensorBundleReader reader(files, "/c");
  EXPECT_EQ(reader.num_data_files(), 2);
  EXPECT_EQ(read_all(reader, "s"), counted(6, 1));
}

TEST(ShardedCases, Case88_KeysAreSortedDataAreNotAndPartsMerge) {
  MemoryFiles files;
  for (const char* stem : {"foo", "bar"}) {
    TensorBundleWriter writer(files, fmt::format("/t/{}", stem));
    for (const int number : {3, 0, 2, 1})
      add_filled(writer, fmt::format("{}_{:03}", stem, number), static_cast<float>(number));
    writer.finish();
  }
  EXPECT_EQ(TensorBundleReader(files, "/t/foo").keys(),
            (std::vector<std::string>{"foo_000", "foo_001", "foo_002", "foo_003"}));
  std::string data;
  for (const float value : {3.f, 0.f, 2.f, 1.f}) data += text_of(raw(Floats(6, value)));
  EXPECT_EQ(*files.contents().at("/t/foo.data-00000-of-00001"), data);
  const std::filesystem::path parts[] = {"/t/foo", "/t/bar"};
  merge_tensor_bundles(files, parts, "/merged");
  const TensorBundleReader reader(files, "/merged");
  EXPECT_EQ(reader.keys().size(), 8u);
  EXPECT_EQ(read_all(reader, "bar_002"), Floats(6, 2));
  EXPECT_EQ(*files.contents().at("/merged.data-00000-of-00002"), data);
  EXPECT_EQ(files.contents().size(), 3u);
}

TEST(ShardedCases, Case88_MergingOnePartIsARename) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/t/part");
  add_filled(writer, "x", 1);
  writer.finish();
  const std::string index = hex_of_file(files, "/t/part.index");
  const std::filesystem::path parts[] = {"/t/part", "/t/missing"};
  EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, parts, "/m"); }),
              HasSubstr("/t/missing has no index"));
  merge_tensor_bundles(files, parts, "/m", {.allow_missing = true});
  EXPECT_EQ(hex_of_file(files, "/m.index"), index);
  EXPECT_THAT(refusal<ValueError>(
                  [&] { merge_tensor_bundles(files, parts, "/n", {.allow_missing = true}); }),
              HasSubstr("got none of 2"));
}

TEST(ShardedCases, Case88_MergingDropsEmptyPartsAndRefusesDuplicates) {
  MemoryFiles files;
  TensorBundleWriter empty(files, "/t/0"), one(files, "/t/1"), again(files, "/t/2");
  add_filled(one, "x", 1);
  add_filled(again, "x", 2);
  for (TensorBundleWriter* writer : {&empty, &one, &again}) writer->finish();
  const std::filesystem::path twice[] = {"/t/1", "/t/2"};
  EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, twice, "/m"); }),
              HasSubstr("Duplicate tensor keyed by x"));
  const std::filesystem::path parts[] = {"/t/0", "/t/1"};
  merge_tensor_bundles(files, parts, "/m");
  const TensorBundleReader reader(files, "/m");
  EXPECT_EQ(reader.num_data_files(), 1);
  EXPECT_EQ(read_all(reader, "x"), Floats(6, 1));
}

TEST(ShardedCases, Case88_MergingRefusesPartsOfAnotherKind) {
  for (const auto& [field, said] : {std::pair(&BundleHeader::endianness, "conflicting endianness"),
                                    {&BundleHeader::producer, "different format versions"}}) {
    MemoryFiles files;
    const auto parts = write_parts(files);
    change_header(files, parts[1],
                  [&, f = field](BundleHeader& header) { header.*f = header.*f ? 0 : 1; });
    EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, parts, "/c"); }),
                HasSubstr(said));
    EXPECT_FALSE(files.stat("/c.index"));
  }
}

TEST(BundleCases, AMergeThatEndsAnywhereLeavesPartsOrAll) {
  MemoryFiles before;
  const auto parts = write_parts(before);
  checkpoint::at_each_operation(
      before, [&](checkpoint::FileSystem& files) { merge_tensor_bundles(files, parts, "/c"); },
      [&](MemoryFiles& left, bool succeeded) {
        if (!left.stat("/c.index")) {
          EXPECT_FALSE(succeeded);
          return;
        }
        EXPECT_EQ(read_all(TensorBundleReader(left, "/c"), "s"), counted(6, 1));
      });
}

// The part would go when the old checkpoint goes.
TEST(BundleMerge, NoPartIsTheWhole) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/t/m");
  add_filled(writer, "x", 1);
  writer.finish();
  for (const char* part : {"/t/m", "/t/./m", "/t/u/../m"}) {
    const std::filesystem::path parts[] = {part};
    EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, parts, "/t/m"); }),
                HasSubstr("no part must have the prefix that is written"));
  }
  EXPECT_EQ(read_all(TensorBundleReader(files, "/t/m"), "x"), Floats(6, 1));
}

TEST(BundleMerge, OneSliceIsInOnePart) {
  MemoryFiles files;
  const std::vector<std::filesystem::path> parts = {"/t/0", "/t/1"};
  for (const auto& part : parts) {
    TensorBundleWriter writer(files, part);
    add_part(writer, "s", "3 2 0,2:0,2", {1, 2, 3, 4});
    writer.finish();
  }
  EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, parts, "/m"); }),
              HasSubstr("/t/1 has a slice that a part before it has too"));
}

/// The same bundle with other entries under the keys that begin so; one without a shape goes.
void change_entries(MemoryFiles& files, const std::string& prefix, std::string_view begin,
                    const std::function<void(BundleEntry&)>& change) {
  std::string& bytes = *files.contents().at(prefix + ".index");
  StringTableWriter writer;
  StringTable(bytes, "").each([&](std::string_view key, std::string_view value) {
    BundleEntry entry;
    if (key.empty() || !key.starts_with(begin)) return writer.add(key, value);
    ASSERT_TRUE(parse(value, entry));
    change(entry);
    if (!entry.shape.empty()) writer.add(key, serialize(entry));
  });
  bytes = writer.finish();
}

// The second of two parts is damaged.
TEST(BundleMerge, ADamagedSliceIsNamedAndNothingChanges) {
  const std::string_view slice("\0", 1), whole = "s";
  const auto said = [](std::string_view key, const std::function<void(BundleEntry&)>& change) {
    MemoryFiles files;
    const auto parts = write_parts(files);
    change_entries(files, parts[1], key, change);
    const auto before = files.copy();
    const std::string why =
        refusal<std::exception>([&] { merge_tensor_bundles(files, parts, "/c"); });
    EXPECT_EQ(files.contents().size(), before->contents().size());
    for (const auto& [path, bytes] : before->contents())
      EXPECT_EQ(*files.contents().at(path), *bytes) << path;
    return why;
  };
  const std::string tensor = "merge: tensor 's': ";
  EXPECT_EQ(said(slice, [](BundleEntry& entry) { entry.shape.clear(); }),
            tensor + "its slice '3 2 2,1:0,2' has no entry");
  const std::string another =
      tensor + "its slice '3 2 2,1:0,2' is stored with another dtype or shape";
  EXPECT_EQ(said(slice, [](BundleEntry& entry) { entry.shape = {2, 1}; }), another);
  EXPECT_EQ(said(slice, [](BundleEntry& entry) { entry.dtype = 3; }), another);
  EXPECT_THAT(said(slice, [](BundleEntry& entry) { entry.shard = 7; }),
              AllOf(HasSubstr("/c_temp/part-00001-of-00002: slice \"\\x00"),
                    HasSubstr("is in data file 7 of 1, which is not there")));
  EXPECT_THAT(said(slice,
                   [](BundleEntry& entry) {
                     entry.shape = {-2, 1};
                   }),
              AllOf(HasSubstr("/c_temp/part-00001-of-00002: slice \"\\x00"),
                    HasSubstr("its entry is not parseable")));
  EXPECT_THAT(said(whole, [](BundleEntry& entry) { entry.slices[0][0].start = 3; }),
              HasSubstr(tensor + "slice out of bounds"));
  EXPECT_THAT(said(whole, [](BundleEntry& entry) { entry.slices[0].pop_back(); }),
              HasSubstr(tensor));
  EXPECT_THAT(said(whole,
                   [](BundleEntry& entry) {
                     entry.shape = {4, 2};
                   }),
              HasSubstr("is another than in the parts before"));
}

TEST(BundleMerge, SlicesOfTwoPartsMayNotOverlap) {
  MemoryFiles files;
  const std::vector<std::filesystem::path> parts = {"/t/0", "/t/1"};
  for (const auto& [part, spec] :
       {std::pair(parts[0], "3 2 0,2:0,2"), std::pair(parts[1], "3 2 1,2:0,2")}) {
    TensorBundleWriter writer(files, part);
    add_part(writer, "s", spec, {1, 2, 3, 4});
    writer.finish();
  }
  EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(files, parts, "/m"); }),
              HasSubstr("tensor 's': Overlapping slices: existing slice = '3 2 0,2:0,2', new slice "
                        "= '3 2 1,2:0,2'"));
  EXPECT_EQ(files.contents().size(), 4u);
}

// Data are renamed, not read.
TEST(BundleMerge, DamagedDataAreNamedByWhoReadsThem) {
  MemoryFiles files;
  const auto parts = write_parts(files);
  (*files.contents().at(parts[1].string() + ".data-00000-of-00001"))[5] ^= 1;
  merge_tensor_bundles(files, parts, "/c");
  const TensorBundleReader reader(files, "/c");
  EXPECT_EQ(read_part(reader, "s", "3 2 0,2:0,2", 4), counted(4, 1));
  EXPECT_THAT(refusal<DataLoss>([&] { reader.read("s"); }),
              AllOf(HasSubstr("Checksum does not match"), HasSubstr("c.data-00001-of-00002")));
}

TEST(BundleMerge, AChangedByteOfAPartsIndexIsRefusedOrMeansNothing) {
  MemoryFiles whole;
  const auto parts = write_parts(whole);
  const std::string index = parts[1].string() + ".index";
  for (std::size_t at = 0; at < whole.contents().at(index)->size(); ++at) {
    const auto files = whole.copy();
    char& byte = (*files->contents().at(index))[at];
    byte = static_cast<char>(byte ^ (1 << (at % 8)));
    const std::string said =
        refusal<std::exception>([&] { merge_tensor_bundles(*files, parts, "/c"); });
    if (said.empty())
      EXPECT_EQ(read_all(TensorBundleReader(*files, "/c"), "s"), counted(6, 1)) << at;
    else
      EXPECT_TRUE(files->stat(index) && !files->stat("/c.index")) << at << " " << said;
  }
}

/// A part on disk, of one tensor "x".
void write_one(const std::filesystem::path& part, float value) {
  TensorBundleWriter writer(part);
  add_filled(writer, "x", value);
  writer.finish();
}

TEST(BundleMerge, APartMayLieInADirectoryThatIsALink) {
  const TemporaryDirectory directory;
  write_one(directory.path() / "there/part", 3);
  std::filesystem::create_directory_symlink("there", directory.path() / "link");
  const std::filesystem::path parts[] = {directory.path() / "link/part"};
  merge_tensor_bundles(parts, directory.path() / "m");
  EXPECT_EQ(read_all(TensorBundleReader(directory.path() / "m"), "x"), Floats(6, 3));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "there/part.index"));
}

TEST(BundleMerge, NoPartIsTheWholeThroughALink) {
  const TemporaryDirectory directory;
  write_one(directory.path() / "there/m", 3);
  std::filesystem::create_directory_symlink("there", directory.path() / "link");
  const std::filesystem::path parts[] = {directory.path() / "link/m"};
  EXPECT_THAT(
      refusal<ValueError>([&] { merge_tensor_bundles(parts, directory.path() / "there/m"); }),
      HasSubstr("no part must have the prefix that is written"));
  EXPECT_EQ(read_all(TensorBundleReader(directory.path() / "there/m"), "x"), Floats(6, 3));
}

// Renamed into another directory, the link would lead nowhere; or to what is replaced.
TEST(BundleMerge, DataFilesAreNoLinks) {
  const TemporaryDirectory directory;
  const std::filesystem::path folder = directory.path() / "parts", data = "0.data-00000-of-00001";
  write_one(folder / "0", 3);
  std::filesystem::rename(folder / data, folder / "kept");
  std::filesystem::create_symlink("kept", folder / data);
  EXPECT_EQ(read_all(TensorBundleReader(folder / "0"), "x"), Floats(6, 3));
  const std::filesystem::path parts[] = {folder / "0"};
  EXPECT_THAT(refusal<ValueError>([&] { merge_tensor_bundles(parts, directory.path() / "m"); }),
              HasSubstr((folder / data).string() + " is a link"));
  EXPECT_EQ(read_all(TensorBundleReader(folder / "0"), "x"), Floats(6, 3));
}

TEST(BundleMerge, PartsAreNumberedBelowTheirNumber) {
  EXPECT_EQ(part_prefix("c", 1, 2), "c_temp/part-00001-of-00002");
  EXPECT_EQ(refusal<ValueError>([] { part_prefix("c", 2, 2); }),
            "part_prefix: part must be 0 <= part < 2, the number of parts, got 2");
  EXPECT_EQ(refusal<ValueError>([] { part_prefix("c", -1, 2); }),
            "part_prefix: part must be 0 <= part < 2, the number of parts, got -1");
  EXPECT_EQ(refusal<ValueError>([] { part_prefix("c", 0, 0); }),
            "part_prefix: part must be 0 <= part < 0, the number of parts, got 0");
}

TEST(BundleMerge, PartsMayBeMoreThanFilesThatAProcessOpens) {
  constexpr std::int32_t kParts = 150;
  const TemporaryDirectory directory;
  const std::filesystem::path prefix = directory.path() / "ckpt";
  std::vector<std::filesystem::path> parts;
  for (std::int32_t i = 0; i < kParts; ++i) {
    parts.push_back(part_prefix(prefix, i, kParts));
    TensorBundleWriter writer(parts.back());
    add_part(writer, "s", fmt::format("{} 1 {},1:0,1", kParts, i), {static_cast<float>(i)});
    writer.finish();
  }
  const OpenFilesLimit limit(100);
  merge_tensor_bundles(parts, prefix);
  const TensorBundleReader reader(prefix);
  EXPECT_EQ(reader.num_data_files(), kParts);
  EXPECT_EQ(read_all(reader, "s"), counted(kParts));
  reader.verify();
}

}  // namespace
}  // namespace embertable::formats
