#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace embertable::wire {

/// How a field's value is written. Source: protobuf, "Encoding".
enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

struct Tag {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
};

/// What is being read, for messages: a message, its bytes, and the fields that are open.
struct Input {
  std::string_view message;
  std::string_view bytes;
  std::vector<std::string_view> fields = {};

  /// Throws ValueError: "TPUEmbeddingConfiguration.table_descriptor.name, byte 7: <rule>".
  [[noreturn]] void refuse(const char* at, const std::string& rule) const;
};

/// Reads the bytes of one message inside an Input, and nothing beyond them; refuses values that are
/// cut short.
class Cursor {
 public:
  /// `bytes` is a part of input.bytes; both are borrowed.
  Cursor(const Input& input, std::string_view bytes) : input_(input), bytes_(bytes) {}

  bool at_end() const noexcept { return bytes_.at_end(); }
  const char* at() const noexcept { return bytes_.at(); }

  Tag tag();
  std::uint64_t varint();
  std::uint32_t fixed32();
  std::uint64_t fixed64();
  std::string_view bytes();  ///< a length and that number of bytes

  /// Skips the value of `tag`, groups included.
  void skip(Tag tag);

 private:
  void require(std::uint64_t count) const;
  void skip_group(std::uint32_t number);

  const Input& input_;
  ByteCursor<const char> bytes_;
};

}  // namespace embertable::wire
