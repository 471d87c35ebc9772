#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "testing/source_path.h"

namespace embertable::wire {

/// What TensorFlow made: src/tensorflow/wire/testdata/README.md.
inline const nlohmann::json& golden() {
  static const nlohmann::json all = nlohmann::json::parse(
      std::ifstream(source_path("src/tensorflow/wire/testdata/config_protos.json")));
  return all;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace embertable::wire
