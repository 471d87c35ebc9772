// Cases of tensor bundles by their numbers: what is written, read, refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "base/crc32c.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "checkpoint/each_operation.h"
#include "embertable/errors.h"
#include "embertable/object_graph.h"
#include "formats/bundle_messages.h"
#include "formats/golden_bundles.h"
#include "formats/string_table.h"

namespace embertable::formats {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using checkpoint::MemoryFiles;
using Floats = std::vector<float>;

std::span<const std::byte> raw(const Floats& values) { return std::as_bytes(std::span(values)); }

Floats counted(std::size_t count, float first = 0) {
  Floats values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

void add_floats(TensorBundleWriter& writer, const std::string& key, std::vector<std::int64_t> shape,
                const Floats& values) {
  writer.add(key, BundleDType::kFloat32, shape, raw(values));
}

void add_part(TensorBundleWriter& writer, const std::string& key, const std::string& spec,
              const Floats& values) {
  writer.add_slice(key, BundleDType::kFloat32, parse_slice_spec(spec), raw(values));
}

Floats read_part(const TensorBundleReader& reader, const std::string& key, const std::string& spec,
                 std::size_t count) {
  Floats values(count, -1);
  reader.read(key, parse_slice_spec(spec), std::as_writable_bytes(std::span(values)));
  return values;
}

Floats read_all(const TensorBundleReader& reader, const std::string& key) {
  const Tensor tensor = reader.read_tensor(key);
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

/// What an error of class Error says; "" if there is none.
template <class Error = ValueError>
std::string refusal(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string hex_of_file(MemoryFiles& files, const std::string& path) {
  return wire::to_hex(*files.contents().at(path));
}

TEST(ShardedCases, Case78_SliceSpecsOfDivisions) {
  const auto text = [](std::int64_t first, std::int64_t rows) {
    return to_string(SliceSpec{{13, 5}, {{first, rows}, {0, 5}}});
  };
  EXPECT_EQ(text(0, 5), "13 5 0,5:0,5");
  EXPECT_EQ(text(5, 4), "13 5 5,4:0,5");
  EXPECT_EQ(text(9, 4), "13 5 9,4:0,5");
  for (const char* spec :
       {"20 43 0,20:0,22", "20 43 0,20:22,21", "10 43 0,10:0,43", "4 3 1,2:-", "7 -"})
    EXPECT_EQ(to_string(parse_slice_spec(spec)), spec);
  EXPECT_EQ(parse_slice_spec("4 3 +1,2:-"), (SliceSpec{{4, 3}, {{1, 2}, {}}}));
}

TEST(ShardedCases, Case79_SaysWhatIsWrongWithASliceSpec) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "Need least two elements"},
      {"4", "Need least two elements"},
      {"4 x 0,1:-", "Non numerical dimension"},
      {"4  3 0,1:-", "Non numerical dimension"},
      {"4 3 0,1:- ", "Non numerical dimension"},
      {"4 3 0,1:0", "Expected a pair of numbers"},
      {"4 3 0,1:0,1,2", "Expected a pair of numbers"},
      {"4 3 0,1:a,1", "Expected a pair of numbers"},
      {"4 3 -1,1:-", "Expected non-negative start"},
      {"4 3 0,0:-", "Expected non-negative start"},
      {"4 3 0,-1:-", "Expected non-negative start"},
      {"4 3 0,1", "Mismatching ranks"},
      {"4 3 0,1:-:-", "Mismatching ranks"},
      {"4 3 3,2:-", "out of bounds"},
      {"4 3 5,1:-", "out of bounds"},
      {"4 3 1,9223372036854775807:-", "out of bounds"},
      {"-4 3 0,1:-", "a dimension must be >= 0, got -4"},
  };
  for (const auto& [spec, said] : cases)
    EXPECT_THAT(refusal([&, s = spec] { parse_slice_spec(s); }), HasSubstr(said));
}

TEST(ShardedCases, Case80_ColumnsComeFromEitherSlice) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "5 10 -:0,1", Floats(5, 0));
  add_part(writer, "t", "5 10 -:1,9", Floats(45, 1));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  Floats all(50, 1);
  for (std::size_t row = 0; row < 5; ++row) all[row * 10] = 0;
  EXPECT_EQ(read_all(reader, "t"), all);
  EXPECT_EQ(read_part(reader, "t", "5 10 -:0,2", 10), (Floats{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(read_part(reader, "t", "5 10 -:2,2", 10), Floats(10, 1));
}

TEST(ShardedCases, Case81_AFullSliceInEitherForm) {
  for (const char* stored : {"5 10 -:-", "5 10 0,5:0,10"}) {
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    add_part(writer, "t", stored, counted(50));
    writer.finish();
    const TensorBundleReader reader(files, "/b");
    EXPECT_TRUE(reader.describe("t").slices.empty());
    for (const char* wanted : {"5 10 -:-", "5 10 0,5:0,10"})
      EXPECT_EQ(read_part(reader, "t", wanted, 50), counted(50));
  }
}

TEST(ShardedCases, Case82_ARequestCrossesSlicesAndMeetsAHole) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "4 5 0,2:-", counted(10));
  add_part(writer, "t", "4 5 2,2:0,3", {10, 11, 12, 15, 16, 17});
  add_part(writer, "t", "4 5 3,1:3,2", {18, 19});
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(read_part(reader, "t", "4 5 1,1:-", 5), (Floats{5, 6, 7, 8, 9}));
  EXPECT_EQ(read_part(reader, "t", "4 5 1,2:0,3", 6), (Floats{5, 6, 7, 10, 11, 12}));
  EXPECT_EQ(read_part(reader, "t", "4 5 3,1:-", 5), (Floats{15, 16, 17, 18, 19}));
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "4 5 1,2:2,3", 6); }),
              HasSubstr("sufficient slices"));
  EXPECT_THAT(refusal([&] { reader.read("t"); }), HasSubstr("sufficient slices"));
}

TEST(ShardedCases, Case83_RequestsThatDoNotFit) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_part(writer, "t", "4 2 0,2:-", counted(4));
  EXPECT_THAT(refusal([&] { add_part(writer, "t", "4 2 1,2:-", counted(4)); }),
              HasSubstr("Overlapping slices"));
  EXPECT_THAT(
      refusal([&] { add_part(writer, "t", "5 2 2,2:-", counted(4)); }),
      HasSubstr("slices must be of one tensor, [4, 2] of float32, got one of [5, 2] of float32"));
  add_part(writer, "t", "4 2 2,2:-", counted(4, 4));
  const std::int64_t ids[] = {1, 2};
  writer.add("i", BundleDType::kInt64, std::vector<std::int64_t>{2}, std::as_bytes(std::span(ids)));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  EXPECT_THAT(refusal<KeyError>([&] { reader.read("x"); }),
              HasSubstr("Key x not found in checkpoint"));
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "5 2 0,1:-", 2); }),
              HasSubstr("does not match the shape stored in checkpoint"));
  EXPECT_THAT(refusal([&] { read_part(reader, "t", "4 2 0,1:-", 3); }),
              HasSubstr("2 elements of 4 bytes"));
  const ExpectedTensor expected[] = {{"t", BundleDType::kFloat64, {4, 2}},
                                     {"i", BundleDType::kInt32, {3}}};
  const std::string both = refusal([&] { reader.require(expected); });
  EXPECT_THAT(both, HasSubstr("t; expected dtype float64 does not equal original dtype float32\n"));
  EXPECT_THAT(both, HasSubstr("i; expected dtype int32 does not equal original dtype int64"));
  const ExpectedTensor longer[] = {{"i", BundleDType::kInt64, {3}}};
  EXPECT_THAT(refusal([&] { reader.require(longer); }), HasSubstr("does not match the shape"));
  const ExpectedTensor right[] = {{"i", BundleDType::kInt64, {2}}};
  EXPECT_EQ(refusal([&] { reader.require(right); }), "");
}

TEST(ShardedCases, Case84_OneSliceOfEverythingHasNoList) {
  MemoryFiles sliced, plain;
  TensorBundleWriter a(sliced, "/b"), b(plain, "/b");
  add_part(a, "t", "3 2 0,3:0,2", counted(6));
  add_floats(b, "t", {3, 2}, counted(6));
  a.finish();
  b.finish();
  EXPECT_EQ(hex_of_file(sliced, "/b.index"), hex_of_file(plain, "/b.index"));
}

TEST(ShardedCases, Case85_TheWriterRefusesAndEnds) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  add_floats(writer, "t", {2}, {1, 2});
  EXPECT_THAT(refusal([&] { add_floats(writer, "t", {2}, {3, 4}); }), HasSubstr("duplicate key"));
  EXPECT_THAT(refusal([&] { add_part(writer, "t", "4 0,2", {1, 2}); }), HasSubstr("duplicate key"));
  EXPECT_THAT(refusal([&] {
                add_floats(writer, "u", {3}, {1, 2});
              }),
              HasSubstr("cannot have 8 bytes"));
  EXPECT_THAT(refusal([&] {
                add_floats(writer, "", {2}, {1, 2});
              }),
              HasSubstr("must not be empty"));
  EXPECT_THAT(refusal([&] {
                add_floats(writer, std::string("\0x", 2), {2}, {1, 2});
              }),
              HasSubstr("zero byte"));
  EXPECT_THAT(refusal([&] {
                add_floats(writer, "n", {-1, -2}, {1, 2});
              }),
              HasSubstr("cannot have"));
  EXPECT_THAT(refusal([&] {
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

/// Two parts with a slice each, as two nodes write them.
std::vector<std::filesystem::path> write_parts(MemoryFiles& files) {
  const std::vector<std::filesystem::path> parts = {part_prefix("/c", 0, 2),
                                                    part_prefix("/c", 1, 2)};
  TensorBundleWriter first(files, parts[0]), second(files, parts[1]);
  add_part(first, "s", "3 2 0,2:0,2", {1, 2, 3, 4});
  add_part(second, "s", "3 2 2,1:0,2", {5, 6});
  first.finish();
  second.finish();
  return parts;
}

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

TEST(ShardedCases, Case87_OrderedNumbersOfKeys) {
  const auto signed_hex = [](std::int64_t number) {
    std::string key;
    append_ordered_signed(number, key);
    return wire::to_hex(key);
  };
  const std::pair<std::int64_t, const char*> numbers[] = {
      {0, "80"},
      {1, "81"},
      {63, "bf"},
      {64, "c040"},
      {128, "c080"},
      {8191, "dfff"},
      {8192, "e02000"},
      {1048576, "f0100000"},
      {134217728, "f808000000"},
      {std::int64_t{1} << 55, "ff8080000000000000"},
      {std::numeric_limits<std::int64_t>::max(), "ffc07fffffffffffffff"},
      {-1, "7f"},
      {-64, "40"},
      {-65, "3fbf"},
      {-2048, "3800"}};
  for (const auto& [number, hex] : numbers) EXPECT_EQ(signed_hex(number), hex) << number;
  const auto unsigned_hex = [](std::uint64_t number) {
    std::string key;
    append_ordered(number, key);
    return wire::to_hex(key);
  };
  EXPECT_EQ(unsigned_hex(0), "00");
  EXPECT_EQ(unsigned_hex(1), "0101");
  EXPECT_EQ(unsigned_hex(256), "020100");
  std::string text;
  append_ordered(std::string_view("a\0\xff", 3), text);
  EXPECT_EQ(wire::to_hex(text), "6100ffff000001");
}

TEST(ShardedCases, Case87_KeysOfSlices) {
  const auto key = [](const char* name, const char* spec) {
    return wire::to_hex(slice_key(name, parse_slice_spec(spec).slice));
  };
  EXPECT_EQ(key("s", "3 2 0,2:0,2"),
            "007300010102"
            "80828082");
  EXPECT_EQ(key("foo", "9 9 9 9 -:-:1,3:4,5"),
            "00666f6f00010104"
            "807f807f81838485");
  EXPECT_EQ(key("t", "264 8 64,200:0,8"),
            "007400010102"
            "c040c0c88088");
  EXPECT_EQ(key("t", "1250000 128 1000000,250000:0,128"),
            "007400010102"
            "ef4240e3d09080c080");
}

TEST(ShardedCases, Case87_OrderedNumbersKeepTheirOrder) {
  std::vector<std::int64_t> numbers = {0, std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max()};
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::int64_t near : {-1, 0, 1}) {
      numbers.push_back((std::int64_t{1} << bit) + near);
      numbers.push_back(-(std::int64_t{1} << bit) + near);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::string before;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::string key;
    append_ordered_signed(numbers[i], key);
    if (i > 0) {
      EXPECT_EQ(numbers[i - 1] < numbers[i], before < key) << numbers[i];
    }
    before = key;
  }
}

void add_filled(TensorBundleWriter& writer, const std::string& key, float value) {
  add_floats(writer, key, {2, 3}, Floats(6, value));
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

/// The same bundle with another header.
void change_header(MemoryFiles& files, const std::string& prefix,
                   const std::function<void(BundleHeader&)>& change) {
  std::string& bytes = *files.contents().at(prefix + ".index");
  StringTableWriter writer;
  StringTable(bytes, "").each([&](std::string_view key, std::string_view value) {
    BundleHeader header;
    if (key.empty() && parse(value, header)) change(header);
    writer.add(key, key.empty() ? serialize(header) : std::string(value));
  });
  bytes = writer.finish();
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

/// Floats, strings and a sliced table.
void write_mixed(checkpoint::FileSystem& files, const char* prefix = "/b") {
  TensorBundleWriter writer(files, prefix);
  add_floats(writer, "a", {3, 4}, counted(12));
  writer.add_strings("text", std::vector<std::int64_t>{2},
                     std::vector<std::string>{"hello", "world!"});
  add_part(writer, "s", "6 4 0,4:0,4", counted(16));
  add_part(writer, "s", "6 4 4,2:0,4", counted(8, 16));
  writer.finish();
}

/// Everything in it; throws where anything is damaged.
std::string all_of(MemoryFiles& files, const char* prefix = "/b") {
  const TensorBundleReader reader(files, prefix);
  std::string all;
  for (const std::string& key : reader.keys()) {
    all += key + "=";
    if (reader.describe(key).dtype == BundleDType::kString) {
      for (const std::string& one : reader.read_strings(key)) all += one + ";";
    } else {
      all += text_of(reader.read(key));
    }
  }
  return all;
}

TEST(ShardedCases, Case90_NoChangedByteGivesAWrongValue) {
  MemoryFiles whole;
  write_mixed(whole);
  const std::string all = all_of(whole);
  for (const std::string path : {"/b.index", "/b.data-00000-of-00001"}) {
    for (std::size_t at = 0; at < whole.contents().at(path)->size(); ++at) {
      const auto files = whole.copy();
      char& byte = (*files->contents().at(path))[at];
      byte = static_cast<char>(byte ^ (1 << (at % 8)));
      const std::string said = refusal<DataLoss>([&] { EXPECT_EQ(all_of(*files), all) << at; });
      if (path == "/b.index") continue;
      EXPECT_THAT(said, AnyOf(HasSubstr("hecksum does not match"), HasSubstr("string"))) << at;
    }
    for (std::size_t size = 0; size < whole.contents().at(path)->size(); ++size) {
      const auto files = whole.copy();
      files->contents().at(path)->resize(size);
      EXPECT_NE(refusal<DataLoss>([&] { all_of(*files); }), "") << path << " " << size;
    }
  }
}

TEST(ShardedCases, Case91_VersionsThatAreNotRead) {
  MemoryFiles files;
  write_mixed(files);
  const auto refused = [&](const std::function<void(BundleHeader&)>& change) {
    const auto changed = files.copy();
    change_header(*changed, "/b", change);
    return refusal([&] { all_of(*changed); });
  };
  EXPECT_EQ(refused([](BundleHeader& header) {
              EXPECT_EQ(header, (BundleHeader{1, 0, 1, 0, {}}));
              header.bad_consumers = {2, 3};
            }),
            "");
  EXPECT_THAT(refused([](BundleHeader& header) { header.producer = header.min_consumer = 2; }),
              HasSubstr("above current version"));
  EXPECT_THAT(refused([](BundleHeader& header) {
                header.bad_consumers = {7, 1};
              }),
              HasSubstr("disallows consumer version"));
  EXPECT_THAT(refused([](BundleHeader& header) { header.producer = -1; }),
              HasSubstr("below min producer"));
}

TEST(ShardedCases, Case92_OfTheOtherByteOrder) {
  MemoryFiles files;
  put(files, "/b.data-00000-of-00001",
      std::string("\x3f\0\0\0\0\x02", 6) + std::string("\0\0\0\0\0\0\0\x07", 8));
  StringTableWriter writer;
  writer.add("", serialize(BundleHeader{1, 1, 1, 0, {}}));
  const auto entry = [&](const char* key, BundleDType dtype, std::vector<std::int64_t> shape,
                         std::int64_t offset, std::int64_t size) {
    const std::string bytes =
        files.contents()
            .at("/b.data-00000-of-00001")
            ->substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
    writer.add(key, serialize(BundleEntry{static_cast<std::int32_t>(dtype),
                                          std::move(shape),
                                          0,
                                          offset,
                                          size,
                                          masked_crc32c(crc32c(bytes)),
                                          {}}));
  };
  entry("f", BundleDType::kFloat32, {}, 0, 4);
  entry("h", BundleDType::kUInt16, {1}, 4, 2);
  entry("i", BundleDType::kInt64, {}, 6, 8);
  put(files, "/b.index", writer.finish());
  const TensorBundleReader reader(files, "/b");
  EXPECT_EQ(read_all(reader, "f"), Floats{0.5f});
  EXPECT_EQ(wire::to_hex(text_of(reader.read("h"))), "0200");
  EXPECT_EQ(reader.read_tensor("i").values<std::int64_t>()[0], 7);
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
  EXPECT_THAT(refusal([&] { TensorBundleWriter(files, "/x", {.alignment = 0}); }),
              HasSubstr("alignment must be >= 1"));
}

TEST(ShardedCases, Case95_AnIndexOfCompressedBlocksIsRead) {
  MemoryFiles files;
  write_mixed(files);
  const std::string all = all_of(files);
  for (const std::size_t block_bytes : {1, 262144}) {
    StringTableWriter writer({.block_bytes = block_bytes, .type = BlockType::kSnappy});
    const std::string index = *files.contents().at("/b.index");
    StringTable(index, "").each([&](auto key, auto value) { writer.add(key, value); });
    *files.contents().at("/b.index") = writer.finish();
    EXPECT_EQ(all_of(files), all);
  }
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

// Any boxes to any boxes, of any dtype's width and rank, by rows and as a whole.
TEST(BundleCases, AnyCutIsReadAsAnyOther) {
  const auto draw = [](std::uint64_t seed, std::uint64_t place, std::uint64_t bound) {
    return static_cast<std::int64_t>(uniform_below(random_bits(91, seed, place), bound));
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<std::int64_t> shape;
    for (std::uint64_t axis = 0; axis < 1 + seed % 3; ++axis)
      shape.push_back(1 + draw(seed, axis, 7));
    std::vector<std::vector<SliceExtent>> cuts(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      for (std::int64_t at = 0; at < shape[axis];) {
        const std::int64_t length = std::min(
            shape[axis] - at, 1 + draw(seed, 100 * axis + static_cast<std::uint64_t>(at), 4));
        cuts[axis].push_back({at, length});
        at += length;
      }
    }
    const auto value = [&](const std::vector<std::int64_t>& at) {
      float number = 0;
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        number = number * 10 + static_cast<float>(at[axis]);
      return number;
    };
    const auto box_values = [&](const TensorSlice& slice) {
      Floats values;
      std::vector<std::int64_t> at;
      const std::function<void(std::size_t)> walk = [&](std::size_t axis) {
        if (axis == shape.size()) return values.push_back(value(at));
        for (std::int64_t i = 0; i < slice[axis].length; ++i) {
          at.push_back(slice[axis].start + i);
          walk(axis + 1);
          at.pop_back();
        }
      };
      walk(0);
      return values;
    };
    MemoryFiles files;
    TensorBundleWriter writer(files, "/b");
    TensorSlice slice;
    const std::function<void()> add = [&] {
      if (slice.size() == shape.size()) {
        writer.add_slice("t", BundleDType::kFloat32, {shape, slice}, raw(box_values(slice)));
        return;
      }
      for (const SliceExtent& extent : cuts[slice.size()]) {
        slice.push_back(extent);
        add();
        slice.pop_back();
      }
    };
    add();
    writer.finish();
    const TensorBundleReader reader(files, "/b");
    for (std::uint64_t k = 0; k < 10; ++k) {
      TensorSlice wanted;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const std::int64_t start =
            draw(seed, 1000 + 10 * k + axis, static_cast<std::uint64_t>(shape[axis]));
        wanted.push_back({start, 1 + draw(seed, 2000 + 10 * k + axis,
                                          static_cast<std::uint64_t>(shape[axis] - start))});
      }
      const Floats expected = box_values(wanted);
      Floats found(expected.size());
      reader.read("t", {shape, wanted}, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, expected) << seed << ": " << to_string(SliceSpec{shape, wanted});
    }
    TensorSlice all;
    for (const std::int64_t dim : shape) all.push_back({0, dim});
    EXPECT_EQ(read_all(reader, "t"), box_values(all));
  }
}

// Streamed by rows, once through whole slices and then by pieces whose sums are known.
TEST(BundleCases, RowsAreStreamedOverSlices) {
  MemoryFiles files;
  TensorBundleWriter writer(files, "/b");
  const std::int64_t rows = 3000, width = 300;
  const auto fill = [&](std::int64_t from) {
    return [=](std::int64_t first, std::span<std::byte> out) {
      const Floats values = counted(out.size() / 4, static_cast<float>((from + first) * width));
      std::memcpy(out.data(), values.data(), out.size());
    };
  };
  for (std::int64_t from = 0; from < rows; from += 1500)
    writer.add_slice("t", BundleDType::kFloat32, {{rows, width}, {{from, 1500}, {0, width}}},
                     fill(from));
  writer.finish();
  const TensorBundleReader reader(files, "/b");
  for (std::int64_t first = 0; first < rows; first += 700) {
    const std::int64_t count = std::min<std::int64_t>(700, rows - first);
    Floats values(static_cast<std::size_t>(count * width));
    reader.read_rows("t", first, count, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, counted(values.size(), static_cast<float>(first * width)));
  }
  EXPECT_LT(files.bytes_read(), 2 * rows * width * 4 + 100000);
  Floats one(static_cast<std::size_t>(width));
  EXPECT_THAT(
      refusal([&] { reader.read_rows("t", rows, 1, std::as_writable_bytes(std::span(one))); }),
      HasSubstr("out of bounds"));
}

// At every failing operation, kill and loss of power: the old checkpoint, none, or the new one.
TEST(BundleCases, ASaveThatEndsAnywhereLeavesOldNoneOrNew) {
  MemoryFiles before;
  TensorBundleWriter old(before, "/b");
  add_floats(old, "old", {2}, {1, 2});
  old.finish();
  const std::string old_content = all_of(before);
  MemoryFiles fresh;
  write_mixed(fresh);
  const std::string new_content = all_of(fresh);
  checkpoint::at_each_operation(
      before, [](checkpoint::FileSystem& files) { write_mixed(files); },
      [&](MemoryFiles& left, bool succeeded) {
        if (!left.stat("/b.index")) {
          EXPECT_FALSE(succeeded);
          return;
        }
        const std::string content = all_of(left);
        EXPECT_TRUE(content == new_content || (!succeeded && content == old_content)) << content;
      });
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

TEST(BundleCases, AnAbandonedWriterLeavesNothing) {
  MemoryFiles files;
  {
    TensorBundleWriter writer(files, "/b");
    add_floats(writer, "t", {1}, {1});
    EXPECT_EQ(files.contents().size(), 1u);
  }
  EXPECT_EQ(files.contents().size(), 0u);
  TensorBundleWriter writer(files, "/b");
  EXPECT_THROW(
      writer.add_slice("t", BundleDType::kFloat32, {{2}, {{0, 2}}},
                       [](std::int64_t, std::span<std::byte>) { throw KeyError("no row"); }),
      KeyError);
  EXPECT_EQ(files.contents().size(), 0u);
  EXPECT_THAT(refusal<StateError>([&] { writer.finish(); }), HasSubstr("closed"));
}

TEST(BundleCases, TheStateFileNamesTheLatest) {
  const TemporaryDirectory directory;
  EXPECT_EQ(latest_bundle(directory.path()), std::nullopt);
  TensorBundleWriter writer(directory.path() / "a \"b\"-1");
  writer.finish();
  write_bundle_state(directory.path(), "gone-1");
  EXPECT_EQ(latest_bundle(directory.path()), std::nullopt);
  write_bundle_state(directory.path(), "a \"b\"-1");
  EXPECT_EQ(latest_bundle(directory.path()), directory.path() / "a \"b\"-1");
  EXPECT_EQ(checkpoint::local_files().list(directory.path()).size(), 3u);
}

// The graph of one object with its counter, as tf.train.Checkpoint(s=...) writes it.
TEST(ObjectGraph, OfOneVariableAndTheCounter) {
  const std::string bytes = wire::from_hex(
      "0a190a0508011201730a100802120c736176655f636f756e7465720a30122e0a0e5641524941424c455f56414c55"
      "45"
      "1a1c732f2e415454524942555445532f5641524941424c455f56414c55450a3b12390a0e5641524941424c455f56"
      "41"
      "4c55451a27736176655f636f756e7465722f2e415454524942555445532f5641524941424c455f56414c5545");
  ObjectGraph graph = ObjectGraph::of_root();
  for (const char* name : {"s", "save_counter"}) {
    const std::int32_t node = graph.variable(0, name, variable_key({name}));
    ObjectGraph::Node& variable = graph.nodes[static_cast<std::size_t>(node)];
    variable.attributes[0].full_name.clear();
    variable.has_checkpoint_values.reset();
  }
  EXPECT_EQ(wire::to_hex(serialize(graph)), wire::to_hex(bytes));
  EXPECT_EQ(parse_object_graph(bytes), graph);
}

TEST(ObjectGraph, NamesAreEscapedAndBack) {
  for (const char* name : {"a", "item.v2/main", "..", ".S", "a/.b", "/"})
    EXPECT_EQ(unescape_name(escape_name(name)), name);
  EXPECT_EQ(variable_key({"embedding", "item.v2/main"}),
            "embedding/item..v2.Smain/.ATTRIBUTES/VARIABLE_VALUE");
}

TEST(ObjectGraph, WhatHasNoFieldsIsWrittenToo) {
  const std::string bytes("\x0a\x00\x0a\x04\x0a\x00\x2a\x00", 8);  // a node; a child, false
  const ObjectGraph graph = parse_object_graph(bytes);
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(wire::to_hex(serialize(graph)), wire::to_hex(bytes));
}

TEST(ObjectGraph, RefusesWhatIsNone) {
  EXPECT_THROW(parse_object_graph("\x0a\x05"), DataLoss);
  EXPECT_THROW(parse_object_graph(std::string("\x0a\x04\x0a\x02\x08\x01", 6)), DataLoss);
  EXPECT_THROW(ObjectGraph::of_root().child(1, "x"), IndexError);
}

}  // namespace
}  // namespace embertable::formats
