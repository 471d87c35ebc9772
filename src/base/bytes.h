// Reads and writes numbers and texts as files and messages hold them, and checks that a read stays
// inside.
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

/// Returns the length of the UTF-8 character at the front, or 0 if it is not well formed. Requires:
/// the text is not empty. Source: The Unicode Standard 15, table 3-7.
constexpr std::size_t utf8_character(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool beyond = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

/// True if all characters are well-formed UTF-8.
constexpr bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace embertable
