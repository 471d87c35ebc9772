// Checkpoints that TensorFlow and others wrote, and damaged copies: tests/golden/README.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "base/crc32c.h"
#include "base/hash.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/object_graph.h"
#include "testing/golden_bundles.h"

namespace embertable::formats {
namespace {

using checkpoint::MemoryFiles;
using nlohmann::json;

std::vector<TensorSlice> slices_of(const json& tensor) {
  std::vector<TensorSlice> slices;
  for (const json& stored : tensor.value("slices", json::array())) {
    TensorSlice& slice = slices.emplace_back();
    for (const json& extent : stored)
      slice.push_back(extent.is_null() ? SliceExtent{} : SliceExtent{extent[0], extent[1]});
  }
  return slices;
}

/// The content as the truth writes it: "hex", or "data_hex" of strings.
json content(const TensorBundleReader& reader, const json& tensor) {
  if (!tensor.contains("data_hex")) return wire::to_hex(text_of(reader.read(tensor["key"])));
  json strings = json::array();
  for (const std::string& one : reader.read_strings(tensor["key"]))
    strings.push_back(wire::to_hex(one));
  return strings;
}

json truth_of(const json& tensor) {
  return tensor.contains("data_hex") ? tensor["data_hex"] : tensor["hex"];
}

void expect_tensors(const TensorBundleReader& reader, const json& truth) {
  std::vector<std::string> keys;
  for (const json& tensor : truth["tensors"]) {
    keys.push_back(tensor["key"]);
    const BundleTensor found = reader.describe(tensor["key"]);
    EXPECT_EQ(to_string(found.dtype), tensor["dtype"]) << found.key;
    EXPECT_EQ(json(found.shape), tensor["shape"]) << found.key;
    EXPECT_EQ(found.slices, slices_of(tensor)) << found.key;
    if (tensor.contains("formula")) continue;
    EXPECT_EQ(content(reader, tensor), truth_of(tensor)) << found.key;
  }
  EXPECT_EQ(reader.keys(), keys);
  EXPECT_EQ(reader.num_data_files(), truth["num_data_files"]);
}

TEST(BundleGolden, EveryWholeCheckpointGivesItsContent) {
  int read = 0;
  for (const auto& [folder, bundle] : golden_bundles().items()) {
    SCOPED_TRACE(folder);
    if (bundle["truth"].contains("expect") || folder == "many_keys") continue;
    MemoryFiles files;
    put_bundle(files, folder);
    if (folder == "large") put_large_data(files);
    const TensorBundleReader reader(files, "/ckpt");
    expect_tensors(reader, bundle["truth"]);
    reader.verify();
    ++read;
  }
  EXPECT_EQ(read, 71 - 55 - 1);
}

TEST(BundleGolden, SlicesOfSeveralFilesMakeUpALargeTable) {
  MemoryFiles files;
  put_bundle(files, "large");
  put_large_data(files);
  const TensorBundleReader reader(files, "/ckpt");
  const std::string key = "table/.ATTRIBUTES/VARIABLE_VALUE";
  const std::string all = text_of(reader.read(key));
  EXPECT_EQ(all, large_rows(0, 20000));
  EXPECT_EQ(fmt::format("{:08x}", crc32c(all)), "f7a20aef");
  std::string rows(300 * 64, '\0');
  for (const std::int64_t first : {0, 6600, 13200, 19700}) {
    reader.read_rows(key, first, 300, std::as_writable_bytes(std::span(rows.data(), rows.size())));
    EXPECT_EQ(rows, large_rows(first, 300)) << first;
  }
}

// The index is TensorFlow's byte for byte: its hash is kept, and the writer gives those bytes.
TEST(ShardedCases, Case96_ManyKeysTakeSeveralBlocks) {
  const json& truth = golden_bundles()["many_keys"];
  MemoryFiles files;
  TensorBundleWriter writer(files, "/ckpt");
  std::vector<std::pair<std::string, float>> values;
  for (std::uint32_t i = 0; i < truth["truth"]["formula"]["count"]; ++i) {
    values.emplace_back(
        fmt::format("{:08x}/{:04x}/embedding_{:05d}", i * 2654435761u, i * 40503u % 65536, i),
        static_cast<float>(i));
  }
  for (const auto& [key, value] : values) writer.add(key, Tensor::scalar(value));
  writer.finish();
  for (const auto& [path, bytes] : files.contents()) {
    const json& file = truth["files"][path.substr(1)];
    EXPECT_EQ(bytes->size(), file["bytes"]) << path;
    EXPECT_EQ(hash_hex(checkpoint::bytes_of(*bytes)), file["xxh128"]) << path;
  }
  EXPECT_EQ(files.contents().size(), 2u);
  const TensorBundleReader reader(files, "/ckpt");
  for (const auto& [key, value] : values)
    EXPECT_EQ(reader.read_tensor(key).values<float>()[0], value) << key;
  EXPECT_EQ(reader.keys().size(), values.size());
  EXPECT_FALSE(reader.contains("00000000/0000/embedding_0000"));
  EXPECT_FALSE(reader.contains("zzz"));
}

struct Failure {
  std::string category, text;
};

/// What reading a tensor of a damaged checkpoint does: gives its content, or fails.
json read_damaged(MemoryFiles& files, const json& tensor, std::optional<Failure>& failure) {
  try {
    return content(TensorBundleReader(files, "/ckpt"), tensor);
  } catch (const DataLoss& error) {
    failure = {"DataLoss|Internal|OutOfRange", error.what()};
  } catch (const ValueError& error) {
    failure = {"InvalidArgument", error.what()};
  } catch (const KeyError& error) {
    failure = {"NotFound", error.what()};
  } catch (const IoError& error) {  // no such file
    failure = {"NotFound", error.what()};
  }
  return {};
}

bool share_a_word(const std::string& a, const std::string& b) {
  for (std::size_t at = 0; at <= a.size();) {
    const std::size_t end = std::min(a.find('|', at), a.size());
    if (("|" + b + "|").find("|" + a.substr(at, end - at) + "|") != std::string::npos) return true;
    at = end + 1;
  }
  return false;
}

void expect_damage(const std::string& folder, const json& truth) {
  for (const json& tensor : golden_bundles()["damaged/whole"]["truth"]["tensors"]) {
    SCOPED_TRACE(folder + ", tensor " + tensor["key"].get<std::string>());
    MemoryFiles files;
    put_bundle(files, folder);
    std::optional<Failure> failure;
    const json found = read_damaged(files, tensor, failure);
    const json& expected = truth["expect"][tensor["key"].get<std::string>()];
    if (expected == "ok") {
      EXPECT_FALSE(failure) << failure->text;
      EXPECT_EQ(found, truth_of(tensor));
      continue;
    }
    ASSERT_TRUE(failure) << "gives " << found;
    EXPECT_TRUE(share_a_word(expected["category"], failure->category))
        << failure->category << ": " << failure->text;
    EXPECT_NE(failure->text.find(expected.value("text", "")), std::string::npos) << failure->text;
  }
}

TEST(BundleGolden, EveryDamagedCheckpointGivesItsError) {
  int damaged = 0;
  for (const auto& [folder, bundle] : golden_bundles().items()) {
    if (!bundle["truth"].contains("expect")) continue;
    expect_damage(folder, bundle["truth"]);
    ++damaged;
  }
  EXPECT_EQ(damaged, 55);
}

json described(const ObjectGraph& graph) {
  json nodes = json::array();
  for (const ObjectGraph::Node& node : graph.nodes) {
    json one = {{"children", json::object()}, {"attributes", json::array()}};
    for (const ObjectGraph::Child& child : node.children) one["children"][child.name] = child.node;
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      one["attributes"].push_back(
          {{"name", attribute.name}, {"full_name", attribute.full_name}, {"key", attribute.key}});
    }
    nodes.push_back(one);
  }
  return nodes;
}

TEST(BundleGolden, ObjectGraphsAreReadAndWrittenByteByByte) {
  int graphs = 0;
  for (const auto& [folder, bundle] : golden_bundles().items()) {
    for (const json& tensor : bundle["truth"].value("tensors", json::array())) {
      if (!tensor.contains("graph")) continue;
      const std::string bytes = wire::from_hex(tensor["data_hex"][0]);
      const ObjectGraph graph = parse_object_graph(bytes);
      EXPECT_EQ(described(graph), tensor["graph"]) << folder;
      EXPECT_EQ(wire::to_hex(serialize(graph)), wire::to_hex(bytes)) << folder;
      ++graphs;
    }
  }
  EXPECT_GE(graphs, 4);
}

}  // namespace
}  // namespace embertable::formats
