// Indexes of tensor bundles, their blocks and messages, object graphs and headers of .npy files.

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "apps/convert/npy.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/object_graph.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "fuzz/target.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/memory_files.h"

namespace {

using namespace embertable;           // NOLINT: a program
using namespace embertable::formats;  // NOLINT

using checkpoint::MemoryFiles;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kIndexPath = "/b.index";
constexpr const char* kDataPath = "/b.data-00000-of-00001";

void put(MemoryFiles& files, const char* path, const std::string& bytes) {
  files.create(path)->write(checkpoint::bytes_of(bytes));
}

/// Floats, strings, a table in two slices.
void write_bundle(MemoryFiles& files) {
  TensorBundleWriter writer(files, "/b");
  const float values[] = {1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(values));
  writer.add("a", BundleDType::kFloat32, std::vector<std::int64_t>{2, 3}, bytes);
  writer.add_strings("text", std::vector<std::int64_t>{2},
                     std::vector<std::string>{"hello", "world"});
  writer.add_slice("table", BundleDType::kFloat32, parse_slice_spec("5 2 0,3:0,2"), bytes);
  writer.add_slice("table", BundleDType::kFloat32, parse_slice_spec("5 2 3,2:-"), bytes.first(16));
  writer.finish();
}

const std::string& data_bytes() {
  static const std::string bytes = [] {
    MemoryFiles files;
    write_bundle(files);
    return *files.contents().at(kDataPath);
  }();
  return bytes;
}

/// A table whose one data block has these contents, all sums right.
std::string table_of_block(const std::string& contents, BlockType type) {
  const auto closed = [](std::string block, BlockType its_type) {
    block += static_cast<char>(its_type);
    char sum[4];
    store_little_endian(masked_crc32c(crc32c(block)), sum);
    return block.append(sum, sizeof sum);
  };
  const auto handle = [](std::size_t offset, std::size_t size) {
    std::string bytes;
    for (std::size_t number : {offset, size}) {
      for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
      bytes += static_cast<char>(number);
    }
    return bytes;
  };
  const std::string at = handle(0, contents.size());
  const std::string key(16, '\xff');
  std::string index = {'\0', '\x10', static_cast<char>(at.size())};
  index += key + at + std::string("\0\0\0\0\x01\0\0\0", 8);
  const std::string data = closed(contents, type);
  std::string footer = handle(0, 0) + handle(data.size(), index.size());
  footer.resize(kTableFooterBytes - 8);
  char magic[8];
  store_little_endian(kTableMagic, magic);
  return data + closed(index, BlockType::kPlain) + footer.append(magic, sizeof magic);
}

Entries entries_of(const StringTable& table) {
  Entries entries;
  table.each(
      [&](std::string_view key, std::string_view value) { entries.emplace_back(key, value); });
  return entries;
}

void read_table(const std::string& bytes) {
  try {
    const StringTable table(bytes, "index");
    StringTableWriter writer({.block_bytes = 64, .restart_every = 3, .type = BlockType::kSnappy});
    const Entries entries = entries_of(table);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      writer.add(entries[i].first, entries[i].second);
      const bool is_first = i == 0 || entries[i - 1].first != entries[i].first;
      if (is_first && table.find(entries[i].first) != entries[i].second) std::abort();
    }
    if (entries_of(StringTable(writer.finish(), "again")) != entries) std::abort();
  } catch (const DataLoss&) {
  }
}

void read_tensor(const TensorBundleReader& reader, const std::string& key) {
  try {
    const BundleTensor tensor = reader.describe(key);
    if (tensor.dtype == BundleDType::kString) {
      reader.read_strings(key);
      return;
    }
    reader.read(key);
    if (tensor.shape.empty() || tensor.shape[0] == 0) return;
    const SliceSpec spec{tensor.shape, TensorSlice(tensor.shape.size(), {0, 1})};
    std::vector<std::byte> element(byte_width(tensor.dtype));
    reader.read(key, spec, element);
  } catch (const DataLoss&) {
  } catch (const ValueError&) {
  } catch (const NotImplemented&) {
  }
}

void read_bundle(const std::string& index) {
  MemoryFiles files;
  put(files, kIndexPath, index);
  put(files, kDataPath, data_bytes());
  try {
    const TensorBundleReader reader(files, "/b");
    for (const std::string& key : reader.keys()) read_tensor(reader, key);
  } catch (const DataLoss&) {
  } catch (const ValueError&) {
  }
}

void read_graph(const std::string& bytes) {
  try {
    const ObjectGraph graph = parse_object_graph(bytes);
    if (parse_object_graph(serialize(graph)) != graph) std::abort();
  } catch (const DataLoss&) {
  }
}

void read_npy(const std::string& bytes) {
  try {
    const NpyHeader header = parse_npy_header(bytes, "array");
    if (parse_npy_header(npy_header(header.shape), "again").shape != header.shape) std::abort();
  } catch (const DataLoss&) {
  } catch (const ValueError&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& index : {bytes, table_of_block(bytes, BlockType::kPlain),
                                   table_of_block(bytes, BlockType::kSnappy)}) {
    read_table(index);
    read_bundle(index);
  }
  read_graph(bytes);
  read_npy(bytes);
  return 0;
}

std::vector<std::string> fuzz::seeds() {
  MemoryFiles files;
  write_bundle(files);
  const std::string index = *files.contents().at(kIndexPath);
  StringTableWriter small({.block_bytes = 40, .restart_every = 2, .type = BlockType::kSnappy});
  StringTable(index, "index").each([&](auto key, auto value) { small.add(key, value); });
  // All that stands before the trailer of the one data block is its contents; its size is what the
  // empty metaindex behind it, of 8 bytes, tells.
  const std::string metaindex("\0\0\0\0\x01\0\0\0\0\xc0\xf2\xa1\xb0", 13);
  const std::string block = index.substr(0, index.find(metaindex) - 5);
  ObjectGraph graph = ObjectGraph::of_root();
  graph.variable(graph.child(0, "embedding"), "user", variable_key({"embedding", "user"}));
  graph.nodes[0].slots.push_back({1, "accumulator", 2});
  graph.nodes[1].registered_saver = ObjectGraph::RegisteredSaver{"saver", "embedding"};
  return {index, small.finish(), block, serialize(graph),
          npy_header(std::vector<std::int64_t>{300, 16})};
}
