#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "exchange/exchange.h"

namespace embertable::engine {

/// Bytes that an array of T has in a message: every array starts on an 8-byte border.
template <class T>
std::int64_t message_bytes(std::int64_t count) {
  return (count * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * 8;
}

/// Writes numbers and arrays into a message of known size. The memory is borrowed.
class MessageWriter {
 public:
  explicit MessageWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// Room for an array, to be filled by the caller.
  template <class T>
  std::span<T> array(std::int64_t count) {
    EMBERTABLE_ASSERT(at_ + message_bytes<T>(count) <= static_cast<std::int64_t>(bytes_.size()));
    const std::span<T> place(reinterpret_cast<T*>(bytes_.data() + at_), count);
    at_ += message_bytes<T>(count);
    return place;
  }
  void number(std::int64_t value) { array<std::int64_t>(1)[0] = value; }

 private:
  std::span<std::byte> bytes_;
  std::int64_t at_ = 0;
};

/// Reads what a MessageWriter has written, in the same order. The memory is borrowed.
class MessageReader {
 public:
  explicit MessageReader(ByteSpan bytes) : bytes_(bytes) {}

  template <class T>
  std::span<const T> array(std::int64_t count) {
    EMBERTABLE_ASSERT(at_ + message_bytes<T>(count) <= static_cast<std::int64_t>(bytes_.size()));
    const std::span<const T> place(reinterpret_cast<const T*>(bytes_.data() + at_), count);
    at_ += message_bytes<T>(count);
    return place;
  }
  std::int64_t number() { return array<std::int64_t>(1)[0]; }

 private:
  ByteSpan bytes_;
  std::int64_t at_ = 0;
};

}  // namespace embertable::engine
