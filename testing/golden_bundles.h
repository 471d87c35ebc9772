#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "embertable/tensorflow/tensor_bundle.h"
#include "testing/golden_messages.h"
#include "testing/memory_files.h"
#include "testing/source_path.h"

namespace embertable::formats {

/// For tests: the checkpoints of tests/golden/bundles.json.gz, by folder; tests/golden/README.md.
inline const nlohmann::json& golden_bundles() {
  static const nlohmann::json all = [] {
    const gzFile file = gzopen(source_path("tests/golden/bundles.json.gz").c_str(), "rb");
    if (file == nullptr) throw std::runtime_error("tests/golden/bundles.json.gz is missing");
    std::string text;
    char piece[1 << 16];
    for (int size; (size = gzread(file, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<std::size_t>(size));
    gzclose(file);
    return nlohmann::json::parse(text);
  }();
  return all;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void put(checkpoint::MemoryFiles& files, const std::string& path, const std::string& bytes) {
  files.create(path)->write(checkpoint::bytes_of(bytes));
}

/// Puts the files of a checkpoint into the root directory, where its prefix is "/ckpt".
inline void put_bundle(checkpoint::MemoryFiles& files, const std::string& folder) {
  const nlohmann::json& whole = golden_bundles()["damaged/whole"]["files"];
  for (const auto& [name, hex] : golden_bundles().at(folder)["files"].items())
    put(files, "/" + name, wire::from_hex(hex.is_null() ? whole[name] : hex));
}

/// The table of "large", row by row.
inline std::string large_rows(std::int64_t first, std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = first * 16; i < (first + count) * 16; ++i) {
    const std::uint32_t mixed = static_cast<std::uint32_t>(i) * 2654435761u;
    const float value = static_cast<float>(mixed >> 8) * 0x1p-24f - 0.5f;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

inline void put_large_data(checkpoint::MemoryFiles& files) {
  put(files, "/ckpt.data-00000-of-00003", large_rows(0, 6667) + large_rows(13334, 6666));
  put(files, "/ckpt.data-00001-of-00003", large_rows(6667, 6667));
}

}  // namespace embertable::formats
