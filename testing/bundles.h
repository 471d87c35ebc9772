#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"
#include "testing/golden_bundles.h"
#include "testing/refusal.h"

namespace embertable::formats {

// For tests: small bundles, written and read.

using checkpoint::MemoryFiles;
using Floats = std::vector<float>;

inline std::span<const std::byte> raw(const Floats& values) {
  return std::as_bytes(std::span(values));
}

inline Floats counted(std::size_t count, float first = 0) {
  Floats values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

inline void add_floats(TensorBundleWriter& writer, const std::string& key,
                       std::vector<std::int64_t> shape, const Floats& values) {
  writer.add(key, BundleDType::kFloat32, shape, raw(values));
}

inline void add_part(TensorBundleWriter& writer, const std::string& key, const std::string& spec,
                     const Floats& values) {
  writer.add_slice(key, BundleDType::kFloat32, parse_slice_spec(spec), raw(values));
}

inline Floats read_part(const TensorBundleReader& reader, const std::string& key,
                        const std::string& spec, std::size_t count) {
  Floats values(count, -1);
  reader.read(key, parse_slice_spec(spec), std::as_writable_bytes(std::span(values)));
  return values;
}

inline Floats read_all(const TensorBundleReader& reader, const std::string& key) {
  const Tensor tensor = reader.read_tensor(key);
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

inline std::string hex_of_file(MemoryFiles& files, const std::string& path) {
  return wire::to_hex(*files.contents().at(path));
}

/// Two parts with a slice each, as two nodes write them.
inline std::vector<std::filesystem::path> write_parts(MemoryFiles& files) {
  const std::vector<std::filesystem::path> parts = {part_prefix("/c", 0, 2),
                                                    part_prefix("/c", 1, 2)};
  TensorBundleWriter first(files, parts[0]), second(files, parts[1]);
  add_part(first, "s", "3 2 0,2:0,2", {1, 2, 3, 4});
  add_part(second, "s", "3 2 2,1:0,2", {5, 6});
  first.finish();
  second.finish();
  return parts;
}

inline void add_filled(TensorBundleWriter& writer, const std::string& key, float value) {
  add_floats(writer, key, {2, 3}, Floats(6, value));
}

/// The same bundle with another header.
inline void change_header(MemoryFiles& files, const std::string& prefix,
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

/// Floats, strings and a sliced table.
inline void write_mixed(checkpoint::FileSystem& files, const char* prefix = "/b") {
  TensorBundleWriter writer(files, prefix);
  add_floats(writer, "a", {3, 4}, counted(12));
  writer.add_strings("text", std::vector<std::int64_t>{2},
                     std::vector<std::string>{"hello", "world!"});
  add_part(writer, "s", "6 4 0,4:0,4", counted(16));
  add_part(writer, "s", "6 4 4,2:0,4", counted(8, 16));
  writer.finish();
}

/// Everything in it; throws where anything is damaged.
inline std::string all_of(MemoryFiles& files, const char* prefix = "/b") {
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

}  // namespace embertable::formats
