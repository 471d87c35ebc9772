// What the writer of tensor bundles writes and refuses.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/bundles.h"
#include "testing/memory_files.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
using ::testing::HasSubstr;

const char* const kIndexA =
    "00000608011a02080100010b61080112002804350638271f00010d6208011200200428043510fd784f00010d630801"
    "12002008280435efd682c3000000000100000000e415b6bc000000000100000000c0f2a1b0000102640042000000"
    "00010000000058b2e9f74708540e000000000000000000000000000000000000000000000000000000000000000000"
    "00"
    "000057fb808b247547db";
const char* const kIndexB =
    "00000608011a020801000a13007300010102808280820801120812020802120208022810354c28987406041582"
    "81808208011208120208011202080220102808352cb9ff52000122730801120812020803120208023a080a0210"
    "020a0210023a0a0a04080210010a0210020000000001000000005d86909e000000000100000000c0f2a1b00001"
    "02740073000000000100000000f32f23ae780885010e0000000000000000000000000000000000000000000000"
    "00000000000000000000000057fb808b247547db";

TEST(ShardedCases, Case84_OneSliceOfEverythingHasNoList) {
  MemoryFiles sliced, plain;
  TensorBundleWriter a(sliced, "/b"), b(plain, "/b");
  add_part(a, "t", "3 2 0,3:0,2", counted(6));
  add_floats(b, "t", {3, 2}, counted(6));
  a.finish();
  b.finish();
  EXPECT_EQ(hex_of_file(sliced, "/b.index"), hex_of_file(plain, "/b.index"));
}

// Whatever of it is written is what was summed.
TEST(TensorBundleWriter, MayBeGivenMemoryThatAnotherThreadChanges) {
  MemoryFiles files;
  std::vector<std::byte> bytes(4 << 20);
  std::atomic<bool> done = false;
  std::thread other([&] {
    for (std::size_t at = 0; !done; at = (at + 4099) % bytes.size())
      std::atomic_ref(bytes[at]).store(static_cast<std::byte>(at), std::memory_order_relaxed);
  });
  for (int i = 0; i < 5; ++i) {
    TensorBundleWriter writer(files, "/b");
    writer.add("t", BundleDType::kUInt8, std::vector<std::int64_t>{std::ssize(bytes)}, bytes);
    writer.finish();
    EXPECT_NO_THROW(TensorBundleReader(files, "/b").verify());
  }
  done = true;
  other.join();
}

TEST(ShardedCases, Case85_TheWriterRefusesAndEnds) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_floats(writer, "t", {2}, {1, 2});
  EXPECT_THAT(refusal<ValueError>([&] {
                add_floats(writer, "t", {2}, {3, 4});
              }),
              HasSubstr("duplicate key"));
  EXPECT_THAT(refusal<ValueError>([&] {
                add_part(writer, "t", "4 0,2", {1, 2});
              }),
              HasSubstr("duplicate key"));
  EXPECT_THAT(refusal<ValueError>([&] {
                add_floats(writer, "u", {3}, {1, 2});
              }),
              HasSubstr("cannot have 8 bytes"));
  EXPECT_THAT(refusal<ValueError>([&] {
                add_floats(writer, "", {2}, {1, 2});
              }),
              HasSubstr("must not be empty"));
  EXPECT_THAT(refusal<ValueError>([&] {
                add_floats(writer, std::string("\0x", 2), {2}, {1, 2});
              }),
              HasSubstr("zero byte"));
  EXPECT_THAT(refusal<ValueError>([&] {
                add_floats(writer, "n", {-1, -2}, {1, 2});
              }),
              HasSubstr("cannot have"));
  EXPECT_THAT(refusal<ValueError>([&] {
                writer.add_slice("e", BundleDType::kFloat32, {{4, 2}, {{1, 0}, {0, 2}}}, raw({}));
              }),
              HasSubstr("positive length"));
  EXPECT_THAT(refusal<TypeError>([&] {
                writer.add("s", BundleDType::kString, std::vector<std::int64_t>{}, raw({}));
              }),
              HasSubstr("add_strings"));
  EXPECT_THAT(refusal<NotImplemented>([&] {
                writer.add("q", static_cast<BundleDType>(42), std::vector<std::int64_t>{}, raw({}));
              }),
              HasSubstr("dtype 42 is not written"));
  writer.finish();
  EXPECT_THAT(refusal<StateError>([&] { writer.finish(); }), HasSubstr("BundleWriter is closed"));
  EXPECT_THAT(refusal<StateError>([&] { add_floats(writer, "u", {1}, {1}); }),
              HasSubstr("BundleWriter is closed"));
  EXPECT_EQ(read_all(TensorBundleReader(files, "/b"), "t"), (Floats{1, 2}));
  EXPECT_THAT(refusal<IoError>([&] { TensorBundleReader(files, "/none"); }),
              HasSubstr("/none.index"));
}

TEST(ShardedCases, Case86_GoldenAIsWrittenAndReadByteByByte) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  for (const auto& [key, value] : {std::pair("a", 0.5f), {"b", 2.0f}, {"c", 3.0f}})
    writer.add(key, Tensor::scalar(value));
  writer.finish();
  EXPECT_EQ(hex_of_file(files, "/b.index"), kIndexA);
  EXPECT_EQ(hex_of_file(files, "/b.data-00000-of-00001"), "0000003f0000004000004040");
  EXPECT_EQ(files.contents().size(), 2u);
}

TEST(ShardedCases, Case86_GoldenBIsWrittenAndReadAsOneTwoAndThreeShards) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "s", "3 2 0,2:0,2", {1, 2, 3, 4});
  add_part(writer, "s", "3 2 2,1:0,2", {5, 6});
  writer.finish();
  EXPECT_EQ(hex_of_file(files, "/b.index"), kIndexB);
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(read_all(reader, "s"), counted(6, 1));
  EXPECT_EQ(read_part(reader, "s", "3 2 0,1:0,2", 2), (Floats{1, 2}));
  EXPECT_EQ(read_part(reader, "s", "3 2 1,2:0,2", 4), (Floats{3, 4, 5, 6}));
  for (std::int64_t row = 0; row < 3; ++row) {
    Floats values(2);
    reader.read_rows("s", row, 1, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, counted(2, static_cast<float>(2 * row + 1)));
  }
}

TEST(ShardedCases, Case89_ScalarsAndEmptyShapes) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_floats(writer, "scalar", {}, {7});
  add_floats(writer, "rows", {0, 1618}, {});
  add_floats(writer, "middle", {16, 0, 18}, {});
  writer.add_strings("text", std::vector<std::int64_t>{2},
                     std::vector<std::string>{"hello", "world"});
  writer.add_strings("none", std::vector<std::int64_t>{0}, {});
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(reader.read_tensor("scalar").shape(), Shape::scalar());
  EXPECT_EQ(reader.read_tensor("rows").shape(), Shape({0, 1618}));
  EXPECT_EQ(reader.read_tensor("middle").shape(), Shape({16, 0, 18}));
  EXPECT_EQ(reader.read_strings("text"), (std::vector<std::string>{"hello", "world"}));
  EXPECT_EQ(reader.read_strings("none"), std::vector<std::string>());
  EXPECT_THAT(hex_of_file(files, "/b.data-00000-of-00001"),
              HasSubstr("0505b56f994f68656c6c6f776f726c64"));
  EXPECT_THAT(hex_of_file(files, "/b.index"), HasSubstr("351b4cd607"));
  EXPECT_THAT(refusal<TypeError>([&] { reader.read("text"); }), HasSubstr("holds strings"));
  EXPECT_THAT(refusal<TypeError>([&] { reader.read_strings("scalar"); }), HasSubstr("not strings"));
}

TEST(ShardedCases, Case93_TensorsBeginAtMultiplesOfTheAlignment) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b", {.alignment = 42});
  add_floats(writer, "a", {1}, {1});
  add_floats(writer, "b", {20}, counted(20));
  writer.add_strings("c", std::vector<std::int64_t>{}, std::vector<std::string>{"text"});
  add_part(writer, "s", "2 1 0,1:-", {8});
  add_part(writer, "s", "2 1 1,1:-", {9});
  writer.finish();
  int entries = 0;
  const std::string index = *files.contents().at("/b.index");
  StringTable(index, "").each([&](std::string_view key, std::string_view value) {
    BundleEntry entry;
    if (key.empty() || key == "s") return;
    ASSERT_TRUE(parse(value, entry));
    EXPECT_EQ(entry.offset % 42, 0) << key;
    ++entries;
  });
  EXPECT_EQ(entries, 5);
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(read_all(reader, "b"), counted(20));
  EXPECT_EQ(read_all(reader, "s"), (Floats{8, 9}));
}

TEST(TensorBundleWriter, RefusesAnAlignmentThatNoTensorHasAndBeginsNoFile) {
  MemoryFiles files;
  constexpr std::int64_t kMost = TensorBundleOptions::kMaxAlignment;
  for (const std::int64_t alignment :
       {std::int64_t{-1}, std::int64_t{0}, kMost + 1, std::int64_t{1} << 62})
    EXPECT_EQ(
        refusal<ValueError>([&] { TensorBundleWriter(files, "/x", {.alignment = alignment}); }),
        "/x: alignment must be 1..1048576, got " + std::to_string(alignment));
  EXPECT_TRUE(files.contents().empty());
  TensorBundleWriter writer(files, "/x", {.alignment = kMost});
  add_floats(writer, "a", {1}, {1});
  add_floats(writer, "b", {1}, {2});
  writer.finish();
  EXPECT_EQ(files.contents().at("/x.data-00000-of-00001")->size(), std::size_t{kMost} + 4);
}

TEST(ShardedCases, Case96_LongKeysFillSeveralBlocks) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  const auto key = [](int i) { return fmt::format("{:03}{}", i, std::string(3000, 'x')); };
  for (int i = 0; i < 300; ++i) writer.add(key(i), Tensor::scalar(static_cast<std::int32_t>(i)));
  const std::string huge(600000, 'h');  // a block of its own
  writer.add(huge, Tensor::scalar(true));
  writer.finish();
  ASSERT_GT(files.contents().at("/b.index")->size(), 3 * 262144u);
  const TensorBundleReader reader(files, "/b");
  for (int i = 0; i < 300; ++i) EXPECT_EQ(reader.read_tensor(key(i)).values<std::int32_t>()[0], i);
  EXPECT_TRUE(reader.read_tensor(huge).values<bool>()[0]);
  EXPECT_FALSE(reader.contains(key(300)));
}

TEST(BundleCases, AnAbandonedWriterLeavesNothing) {
  MemoryFiles files;
  {
    TensorBundleWriter writer(files, "/b");
    add_floats(writer, "t", {1}, {1});
    EXPECT_EQ(files.contents().size(), 1u);
  }
  EXPECT_EQ(files.contents().size(), 0u);
  TensorBundleWriter writer(files, "/b");
  EXPECT_EQ(
      refusal<ValueError>([&] {
        writer.add_slice("t", BundleDType::kFloat32, {{2}, {{0, 2}}}, TensorBundleWriter::Fill());
      }),
      "tensor 't': fill must be a function, got none");
  EXPECT_EQ(files.contents().size(), 1u);
  EXPECT_THROW(
      writer.add_slice("t", BundleDType::kFloat32, {{2}, {{0, 2}}},
                       [](std::int64_t, std::span<std::byte>) { throw KeyError("no row"); }),
      KeyError);
  EXPECT_EQ(files.contents().size(), 0u);
  EXPECT_THAT(refusal<StateError>([&] { writer.finish(); }), HasSubstr("closed"));
}

}  // namespace
}  // namespace embertable::formats
