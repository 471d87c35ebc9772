// Reads and writes numbers as files and messages hold them, and checks that a read stays inside.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"

namespace embertable {

static_assert(std::endian::native == std::endian::little, "numbers have their lowest byte first");

/// Stores a number as its bytes, the lowest first. `to` has room for it and any alignment.
template <std::unsigned_integral Number>
void store_little_endian(Number number, char* to) noexcept {
  std::memcpy(to, &number, sizeof number);
}

template <std::unsigned_integral Number>
void append_little_endian(Number number, std::string& bytes) {
  char stored[sizeof number];
  store_little_endian(number, stored);
  bytes.append(stored, sizeof stored);
}

/// Returns the number that store_little_endian stored at `from`.
template <std::unsigned_integral Number>
Number load_little_endian(const char* from) noexcept {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

/// Reads borrowed bytes from front to back and never beyond their end. Where bytes may be missing,
/// the caller asks `holds` first and throws an error of its own.
template <class Byte>  ///< const char, std::byte or const std::byte
class ByteCursor {
 public:
  explicit ByteCursor(std::span<Byte> bytes) noexcept
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool at_end() const noexcept { return at_ == end_; }
  Byte* at() const noexcept { return at_; }
  std::uint64_t left() const noexcept { return static_cast<std::uint64_t>(end_ - at_); }
  bool holds(std::uint64_t count) const noexcept { return count <= left(); }

  /// Returns the next `count` bytes and moves past them. Requires holds(count).
  Byte* take(std::uint64_t count) noexcept {
    EMBERTABLE_ASSERT(holds(count));
    Byte* taken = at_;
    at_ += count;
    return taken;
  }
  std::string_view text(std::uint64_t count) noexcept {
    return {take(count), static_cast<std::size_t>(count)};
  }
  template <std::unsigned_integral Number>
  Number number() noexcept {
    return load_little_endian<Number>(take(sizeof(Number)));
  }

 private:
  Byte* at_;
  Byte* end_;
};

}  // namespace embertable
