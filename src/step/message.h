#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/memory.h"
#include "embertable/exchange.h"

namespace embertable {

/// Returns the bytes of an array of T in a message: every array starts on an 8-byte border.
template <class T>
std::int64_t message_bytes(std::int64_t count) {
  return (count * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * 8;
}

/// Returns the bytes of the narrowest integer that holds the numbers below `limit`: 1, 2, 4 or 8.
inline std::int64_t index_width(std::int64_t limit) {
  if (limit <= std::int64_t{1} << 8) return 1;
  if (limit <= std::int64_t{1} << 16) return 2;
  return limit <= std::int64_t{1} << 32 ? 4 : 8;
}

/// Returns the bytes of `count` numbers below `limit` in a message.
inline std::int64_t index_bytes(std::int64_t count, std::int64_t limit) {
  return message_bytes<std::byte>(count * index_width(limit));
}

/// Calls use(Integer{}) with the integer of a width.
template <class Use>
void with_index_type(std::int64_t width, Use use) {
  switch (width) {
    case 1:
      return use(std::uint8_t{});
    case 2:
      return use(std::uint16_t{});
    case 4:
      return use(std::uint32_t{});
    default:
      return use(std::uint64_t{});
  }
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

  /// Writes `count` numbers below `limit`: `give` calls its argument with one after the other.
  template <class Give>
  void indices(std::int64_t count, std::int64_t limit, Give give) {
    with_index_type(index_width(limit), [&]<class Integer>(Integer) {
      Integer* to = array<Integer>(count).data();
      give([&](auto number) { *to++ = static_cast<Integer>(number); });
    });
  }

 private:
  ByteCursor<std::byte> bytes_;
};

/// Reads what a MessageWriter of another host has written, in the same order. The message and the
/// stage's text are borrowed. Everything throws IoError, naming host, stage and place, where the
/// message does not hold what is asked for.
class MessageReader {
 public:
  MessageReader(ByteSpan message, std::int32_t host, const Stage& stage)
      : message_(message), bytes_(message), host_(host), stage_(stage) {}

  template <class T>
  std::span<const T> array(std::int64_t count) {
    if (!holds<T>(count)) refuse_length(count, sizeof(T));
    return std::span(reinterpret_cast<const T*>(bytes_.take(message_bytes<T>(count))), count);
  }

  /// Reads a number of 0 to `most`.
  std::int64_t number(std::int64_t most) {
    const std::int64_t number = array<std::int64_t>(1)[0];
    if (number < 0 || number > most) refuse_number(number, most);
    return number;
  }

  /// Reads `count` numbers below `limit` into memory that is taken from `memory`.
  std::span<std::uint64_t> indices(std::int64_t count, std::int64_t limit, Arena& memory) {
    std::span<std::uint64_t> numbers;
    with_index_type(index_width(limit), [&]<class Integer>(Integer) {
      const std::span<const Integer> sent = array<Integer>(count);
      numbers = memory.take<std::uint64_t>(count);
      const std::uint64_t last = static_cast<std::uint64_t>(limit) - 1;
      std::uint64_t outside = 0;  // top bit: a number is above the last
      for (std::size_t i = 0; i < sent.size(); ++i) {
        numbers[i] = sent[i];
        outside |= numbers[i] | (last - numbers[i]);
      }
      if (outside >> 63 != 0) refuse_index(numbers, limit);
    });
    return numbers;
  }

  /// Requires that everything has been read.
  void end() const {
    if (!bytes_.at_end()) refuse_rest();
  }

  [[noreturn]] void refuse(const std::string& rule) const;

 private:
  template <class T>
  bool holds(std::int64_t count) const noexcept {
    return count >= 0 && static_cast<std::uint64_t>(count) <= bytes_.left() / sizeof(T) &&
           bytes_.holds(static_cast<std::uint64_t>(message_bytes<T>(count)));
  }
  [[noreturn]] void refuse_length(std::int64_t count, std::size_t bytes) const;
  [[noreturn]] void refuse_number(std::int64_t number, std::int64_t most) const;
  [[noreturn]] void refuse_index(std::span<const std::uint64_t> numbers, std::int64_t limit) const;
  [[noreturn]] void refuse_rest() const;

  ByteSpan message_;
  ByteCursor<const std::byte> bytes_;
  std::int32_t host_;
  Stage stage_;
};

/// The messages of one host to all others, in memory that is reused.
class Messages {
 public:
  /// The exchange is borrowed.
  explicit Messages(Exchange& exchange) : exchange_(&exchange) {}

  std::int32_t host() const noexcept { return exchange_->host(); }
  std::int32_t hosts() const noexcept { return exchange_->hosts(); }
  bool alone() const noexcept { return hosts() == 1; }

  /// Sets the step that messages belong to from now on, -1: none. Errors name it.
  void set_step(std::int64_t step) noexcept { step_ = step; }
  std::int64_t step() const noexcept { return step_; }

  /// Holds messages, and what their writer needs until it has sent them. Reset by the writer.
  Arena& memory() noexcept { return memory_; }
  std::int64_t bytes() const noexcept { return memory_.bytes(); }

  /// Makes the messages to all hosts: make(host, writer) makes one, which has bytes[host] bytes.
  /// They are in `memory`.
  template <class Write>
  std::span<const ByteSpan> write(std::span<const std::int64_t> bytes, Arena& memory,
                                  Write make) const {
    const std::span<ByteSpan> send = memory.take<ByteSpan>(hosts());
    for (std::size_t host = 0; host < bytes.size(); ++host) {
      const std::span<std::byte> message = memory.take<std::byte>(bytes[host]);
      MessageWriter writer(message);
      make(host, writer);
      send[host] = message;
    }
    return send;
  }

  /// Sends messages, which must stay as they are until `finish`, and waits for no answer.
  /// Collective. `what` names them in errors.
  void start(Channel channel, std::string_view what, std::span<const ByteSpan> send) {
    exchange_->start(channel, {what, step_}, send);
  }

  /// Makes messages as `write` does and sends them. Collective. Returns readers as `finish` does.
  template <class Write>
  std::span<MessageReader> swap(std::string_view what, std::span<const std::int64_t> bytes,
                                Write make) {
    start(Channel::kStep, what, write(bytes, memory_, make));
    return finish(Channel::kStep, what);
  }

  /// Returns readers of what came from each host, valid until the channel's next round starts and
  /// the memory is reset. Collective. `what` names the messages in errors.
  std::span<MessageReader> finish(Channel channel, std::string_view what) {
    const std::span<ByteSpan> received = memory_.take<ByteSpan>(hosts());
    const std::span<MessageReader> readers = memory_.take<MessageReader>(hosts());
    exchange_->finish(channel, received);
    for (std::int32_t host = 0; host < hosts(); ++host)
      readers[host] = MessageReader(received[host], host, {what, step_});
    return readers;
  }

 private:
  Exchange* exchange_;
  std::int64_t step_ = -1;
  Arena memory_;
};

}  // namespace embertable
