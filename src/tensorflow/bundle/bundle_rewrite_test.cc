// What TensorFlow wrote, written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/slices.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/golden_bundles.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;

/// What a data file holds, in the order of its bytes: keys of tensors, with the slice if it is one.
struct StoredPart {
  std::int64_t offset;
  std::string key;
  std::optional<TensorSlice> slice;
};

std::vector<StoredPart> parts_of_file(MemoryFiles& files, const TensorBundleReader& reader,
                                      std::int32_t file) {
  const StringTable index(*files.contents().at("/ckpt.index"), "ckpt.index");
  std::vector<StoredPart> parts;
  const auto add = [&](const std::string& stored_as, StoredPart part) {
    BundleEntry entry;
    ASSERT_TRUE(parse(*index.find(stored_as), entry));
    part.offset = entry.offset;
    if (entry.shard == file) parts.push_back(std::move(part));
  };
  for (const std::string& key : reader.keys()) {
    const BundleTensor tensor = reader.describe(key);
    if (tensor.slices.empty()) add(key, {0, key, {}});
    for (const TensorSlice& slice : tensor.slices) add(slice_key(key, slice), {0, key, slice});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
  return parts;
}

void write_part(const TensorBundleReader& reader, TensorBundleWriter& writer,
                const StoredPart& part) {
  const BundleTensor tensor = reader.describe(part.key);
  if (tensor.dtype == BundleDType::kString) {
    writer.add_strings(part.key, tensor.shape, reader.read_strings(part.key));
  } else if (!part.slice) {
    writer.add(part.key, tensor.dtype, tensor.shape, reader.read(part.key));
  } else {
    const SliceSpec spec{tensor.shape, *part.slice};
    std::vector<std::byte> bytes(box_of(spec.slice, spec.full_shape).volume() *
                                 byte_width(tensor.dtype));
    reader.read(part.key, spec, bytes);
    writer.add_slice(part.key, tensor.dtype, spec, bytes);
  }
}

/// Writes a checkpoint again, data file by data file, as its nodes did.
void write_again(MemoryFiles& files, const TensorBundleReader& reader) {
  std::vector<std::filesystem::path> parts;
  const auto count = static_cast<std::int32_t>(reader.num_data_files());
  for (std::int32_t file = 0; file < count; ++file) {
    parts.push_back(part_prefix("/again", file, count));
    TensorBundleWriter writer(files, parts.back());
    for (const StoredPart& part : parts_of_file(files, reader, file))
      write_part(reader, writer, part);
    writer.finish();
  }
  merge_tensor_bundles(files, parts, "/again");
}

// Indexes and data, also merged of several parts, are TensorFlow's byte for byte.
TEST(BundleGolden, WhatTensorFlowWroteIsWrittenAgainByteForByte) {
  for (const char* folder : {"plain", "sharded", "partitioned_v1", "any_axis", "tpu_embedding",
                             "large", "damaged/whole"}) {
    SCOPED_TRACE(folder);
    MemoryFiles files;
    put_bundle(files, folder);
    if (std::string(folder) == "large") put_large_data(files);
    const TensorBundleReader reader(files, "/ckpt");
    write_again(files, reader);
    std::size_t compared = 0;
    for (const auto& [path, bytes] : files.contents()) {
      if (!path.starts_with("/ckpt.")) continue;
      const std::string again = "/again" + path.substr(5);
      ASSERT_TRUE(files.contents().contains(again)) << again;
      EXPECT_EQ(wire::to_hex(*files.contents().at(again)), wire::to_hex(*bytes)) << path;
      ++compared;
    }
    EXPECT_EQ(compared, static_cast<std::size_t>(reader.num_data_files()) + 1);
  }
}

}  // namespace
}  // namespace embertable::formats
