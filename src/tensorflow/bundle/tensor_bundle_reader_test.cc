// Bundles that are damaged, of another version, byte order or compression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/bundles.h"
#include "testing/temporary_directory.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

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
    return refusal<ValueError>([&] { all_of(*changed); });
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
    const std::string bytes = files.contents().at("/b.data-00000-of-00001")->substr(offset, size);
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

TEST(TensorBundleReader, SaysWhereDamageIs) {
  MemoryFiles files;
  write_mixed(files);
  const std::string data_path = "/b.data-00000-of-00001";
  const auto said = [&](const std::string& path, std::size_t at) {
    const auto changed = files.copy();
    (*changed->contents().at(path))[at] ^= 1;
    return refusal<DataLoss>([&] { all_of(*changed); });
  };
  EXPECT_THAT(said(data_path, 5), HasSubstr("/b: tensor 'a': Checksum does not match: stored"));
  EXPECT_THAT(said(data_path, 5), HasSubstr("b.data-00000-of-00001 from byte 0"));
  const std::size_t text_end = 48 + 2 + 4 + 11;
  EXPECT_THAT(said(data_path, text_end - 1), HasSubstr("00001 from byte 48"));
  EXPECT_THAT(said(data_path, text_end + 70), HasSubstr("00001 from byte 129"));
  EXPECT_THAT(said("/b.index", 5),
              HasSubstr("/b.index: cannot read: block checksum mismatch (byte 0)"));
}

/// What is said of a tensor of two strings that is stored as these bytes.
std::string said_of_strings(const std::string& bytes, std::uint32_t masked_sum = 0) {
  MemoryFiles files;
  put(files, "/b.data-00000-of-00001", "front" + bytes);
  BundleEntry entry{.dtype = static_cast<std::int32_t>(BundleDType::kString), .shape = {2}};
  entry.offset = 5;
  entry.size = std::ssize(bytes);
  entry.masked_sum = masked_sum;
  StringTableWriter writer;
  writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
  writer.add("t", serialize(entry));
  put(files, "/b.index", writer.finish());
  return refusal<DataLoss>([&] { TensorBundleReader(files, "/b").read_strings("t"); });
}

/// The refusal of strings with these lengths and right sums, followed by this text.
std::string said_of_text(unsigned char first, unsigned char second, const std::string& text) {
  LengthSum lengths(false);
  lengths.add(first);
  lengths.add(second);
  std::string rest(4, '\0');
  store_little_endian(masked_crc32c(lengths.sum()), rest.data());
  rest += text;
  return said_of_strings(
      std::string{static_cast<char>(first), static_cast<char>(second)} + rest,
      masked_crc32c(extend_crc32c(lengths.sum(), std::as_bytes(std::span(rest)))));
}

TEST(TensorBundleReader, SaysWhereStringsAreDamagedAndWhatIsThere) {
  const std::string tensor = "/b: tensor 't': ", file = ", b.data-00000-of-00001 from byte ";
  EXPECT_EQ(said_of_text(1, 2, "abb"), "");
  EXPECT_EQ(said_of_strings("a"),
            tensor + "2 strings need a byte each at least, got 1 bytes" + file + "5");
  EXPECT_EQ(said_of_strings("\x01\xff\xfe"),
            tensor + "expected the length of string 1 of 2 as a varint, got the bytes ff fe" +
                file + "6");
  EXPECT_EQ(
      said_of_strings("\x01\x02zz"),
      tensor + "expected the 4 bytes of the checksum of its strings' lengths, got 2" + file + "7");
  EXPECT_THAT(said_of_strings("\x01\x02zyxwvu"),
              AllOf(HasSubstr("The length checksum does not match: stored 7778797a, calculated "),
                    HasSubstr(file + "7")));
  EXPECT_EQ(said_of_text(1, 2, "ab"),
            tensor + "expected the 2 bytes of string 1 of 2, got 1" + file + "12");
  EXPECT_EQ(said_of_text(1, 2, "abbcc"),
            tensor + "expected its end behind 2 strings, got 2 bytes more" + file + "14");
}

// Slices may share bytes, as TensorFlow reads them; a thousand that name the same ones are an
// attack.
TEST(TensorBundleReader, TakesNoMemoryForSlicesThatNameTheSameBytes) {
  for (const std::int64_t rows : {10, 1000}) {
    MemoryFiles files;
    put(files, "/b.data-00000-of-00001", std::string(400, '\0'));
    BundleEntry whole{.dtype = 1, .shape = {rows, 100}}, part{.dtype = 1, .shape = {1, 100}};
    part.size = 400;
    part.masked_sum = masked_crc32c(crc32c(std::string(400, '\0')));
    std::map<std::string, std::string> entries;
    for (std::int64_t row = 0; row < rows; ++row) {
      whole.slices.push_back({{row, 1}, {0, 100}});
      entries[slice_key("t", whole.slices.back())] = serialize(part);
    }
    entries["t"] = serialize(whole);
    StringTableWriter writer;
    writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
    for (const auto& [key, value] : entries) writer.add(key, value);
    put(files, "/b.index", writer.finish());
    const TensorBundleReader reader(files, "/b");
    if (rows == 10) {
      EXPECT_EQ(read_all(reader, "t"), Floats(1000, 0));
    } else {
      EXPECT_THAT(refusal<DataLoss>([&] { reader.read("t"); }),
                  HasSubstr("its slices are many times as large as their data file"));
    }
  }
}

TEST(TensorBundleReader, ReadsAPart) {
  MemoryFiles files;
  write_mixed(files);
  const TensorBundleReader reader(files, "/b");
  const auto said_of = [&](const std::string& key, SliceSpec spec) {
    return refusal<ValueError>([&] { reader.read(key, spec); });
  };
  const Floats expected = {13, 14, 17, 18};  // rows 3 and 4 are in different slices
  EXPECT_TRUE(std::ranges::equal(reader.read("s", parse_slice_spec("6 4 3,2:1,2")), raw(expected)));
  EXPECT_TRUE(reader.read("s", {{6, 4}, {{2, 0}, {0, 4}}}).empty());
  EXPECT_THAT(said_of("s", {{6, 3}, {{0, 1}, {0, 1}}}), HasSubstr("does not match"));
  EXPECT_THAT(said_of("s", {{6, 4}, {{5, 2}, {0, 1}}}), HasSubstr("slice out of bounds"));
}

TEST(TensorBundleReader, TakesNoMemoryForAPartThatNoFileHolds) {
  constexpr std::int64_t kMany = std::int64_t{1} << 45;
  MemoryFiles files;
  put(files, "/b.data-00000-of-00001", std::string(16, '\0'));
  BundleEntry whole{.dtype = 1, .shape = {kMany}}, sliced = whole;
  whole.size = 16;
  sliced.slices = {{{0, 4}}};
  StringTableWriter writer;
  writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
  writer.add("sliced", serialize(sliced));
  writer.add("whole", serialize(whole));
  put(files, "/b.index", writer.finish());
  const TensorBundleReader reader(files, "/b");
  const SliceSpec part{{kMany}, {{1, kMany - 1}}};
  EXPECT_THAT(refusal<DataLoss>([&] { reader.read("whole", part); }),
              HasSubstr("Invalid size in bundle entry: 16 bytes for"));
  EXPECT_THAT(refusal<ValueError>([&] { reader.read("sliced", part); }),
              HasSubstr("Does not have sufficient slices"));
}

TEST(TensorBundleReader, VerifiesTensorsOfTypesWithoutAName) {
  constexpr std::int32_t kQuantized = 11, kVariant = 21;
  for (const std::int32_t dtype : {kQuantized, kVariant}) {
    MemoryFiles files;
    const std::string bytes = "abcd";
    put(files, "/b.data-00000-of-00001", bytes);
    StringTableWriter writer;
    writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
    writer.add("t", serialize(BundleEntry{dtype, {4}, 0, 0, 4, masked_crc32c(crc32c(bytes)), {}}));
    put(files, "/b.index", writer.finish());
    EXPECT_NO_THROW(TensorBundleReader(files, "/b").verify());
    files.contents().at("/b.data-00000-of-00001")->back() = 'e';
    EXPECT_EQ(refusal<DataLoss>([&] { TensorBundleReader(files, "/b").verify(); }).empty(),
              dtype == kVariant);
  }
}

TEST(TensorBundleReader, OffsetsMayBeBeyondFourGiB) {
  const TemporaryDirectory directory;
  const std::filesystem::path prefix = directory.path() / "b";
  constexpr std::int64_t kOffset = (std::int64_t{5} << 30) + 3;
  const Floats values = {1, 2};
  const std::string bytes = text_of(raw(values));
  std::ofstream data(prefix.string() + ".data-00000-of-00001",
                     std::ios::binary);  // a hole in front
  data.seekp(kOffset).write(bytes.data(), std::ssize(bytes));
  data.close();
  StringTableWriter writer;
  writer.add("", serialize(BundleHeader{1, 0, 1, 0, {}}));
  writer.add("t", serialize(BundleEntry{1, {2}, 0, kOffset, 8, masked_crc32c(crc32c(bytes)), {}}));
  std::ofstream(prefix.string() + ".index", std::ios::binary) << writer.finish();
  const TensorBundleReader reader(prefix);
  EXPECT_EQ(read_all(reader, "t"), values);
  EXPECT_EQ(read_part(reader, "t", "2 1,1", 1), Floats{2});
}

}  // namespace
}  // namespace embertable::formats
