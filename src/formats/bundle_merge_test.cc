// Parts of a checkpoint become one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/temporary_directory.h"
#include "checkpoint/each_operation.h"
#include "embertable/tensor_bundle.h"
#include "formats/bundle_messages.h"
#include "formats/test_bundles.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
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
  EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, parts, "/m"); }),
              HasSubstr("/t/missing has no index"));
  merge_tensor_bundles(files, parts, "/m", {.allow_missing = true});
  EXPECT_EQ(hex_of_file(files, "/m.index"), index);
  EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, parts, "/n", {.allow_missing = true}); }),
              HasSubstr("got none of 2"));
}

TEST(ShardedCases, Case88_MergingDropsEmptyPartsAndRefusesDuplicates) {
  MemoryFiles files;
  TensorBundleWriter empty(files, "/t/0"), one(files, "/t/1"), again(files, "/t/2");
  add_filled(one, "x", 1);
  add_filled(again, "x", 2);
  for (TensorBundleWriter* writer : {&empty, &one, &again}) writer->finish();
  const std::filesystem::path twice[] = {"/t/1", "/t/2"};
  EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, twice, "/m"); }),
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
    EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, parts, "/c"); }), HasSubstr(said));
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
    EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, parts, "/t/m"); }),
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
  EXPECT_THAT(refusal([&] { merge_tensor_bundles(files, parts, "/m"); }),
              HasSubstr("/t/1 has a slice that a part before it has too"));
}

/// A process may not open more files than this while it lives.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{files, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_{};
};

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
