#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/memory.h"
#include "exchange/exchange.h"

namespace embertable {

/// Returns the bytes of an array of T in a message: every array starts on an 8-byte border.
template <class T>
std::int64_t message_bytes(std::int64_t count) {
  return (count * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * 8;
}

/// Writes numbers and arrays into a message of known size. The memory is borrowed.
class MessageWriter {
 public:
  explicit MessageWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// Returns room for an array, to be filled by the caller.
  template <class T>
  std::span<T> array(std::int64_t count) {
    return std::span(reinterpret_cast<T*>(bytes_.take(message_bytes<T>(count))), count);
  }
  void number(std::int64_t value) { array<std::int64_t>(1)[0] = value; }

 private:
  ByteCursor<std::byte> bytes_;
};

/// Reads what a MessageWriter has written, in the same order. The memory is borrowed.
class MessageReader {
 public:
  explicit MessageReader(ByteSpan bytes) : bytes_(bytes) {}

  template <class T>
  std::span<const T> array(std::int64_t count) {
    return std::span(reinterpret_cast<const T*>(bytes_.take(message_bytes<T>(count))), count);
  }
  std::int64_t number() { return array<std::int64_t>(1)[0]; }

 private:
  ByteCursor<const std::byte> bytes_;
};

/// The messages of one host to all others, in memory that is reused.
class Messages {
 public:
  /// The exchange is borrowed.
  explicit Messages(Exchange& exchange) : exchange_(exchange) {}

  std::int32_t host() const noexcept { return exchange_.host(); }
  std::int32_t hosts() const noexcept { return exchange_.hosts(); }
  bool alone() const noexcept { return hosts() == 1; }

  /// Holds messages, and what their writer needs until it has sent them. Reset by the writer.
  Arena& memory() noexcept { return memory_; }
  std::int64_t bytes() const noexcept { return memory_.bytes(); }

  /// Sends every host the message that write(host, writer) makes, which has bytes[host] bytes.
  /// Collective. Returns what came from each host, valid until the next call.
  template <class Write>
  std::span<const ByteSpan> swap(std::span<const std::int64_t> bytes, Write write) {
    const std::span<ByteSpan> send = memory_.take<ByteSpan>(hosts());
    const std::span<ByteSpan> received = memory_.take<ByteSpan>(hosts());
    for (std::size_t host = 0; host < bytes.size(); ++host) {
      const std::span<std::byte> message = memory_.take<std::byte>(bytes[host]);
      MessageWriter writer(message);
      write(host, writer);
      send[host] = message;
    }
    exchange_.all_to_all(send, received);
    return received;
  }

 private:
  Exchange& exchange_;
  Arena memory_;
};

}  // namespace embertable
