#include "apps/convert/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace embertable::jobs {
namespace {

/// A character of UTF-8; size 0: the first byte begins none.
struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  std::uint32_t code = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kLeast[size] || code > 0x10ffff || is_surrogate) return {};
  return {code, size};
}

/// True for characters that control a terminal, a line or the direction of writing.
bool controls(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text, Blanks blanks) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_of(text);
    const bool kept = blanks == Blanks::kKeep && (c.code == '\n' || c.code == '\t');
    if (c.size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (controls(c.code) && !kept) {
      out += c.code < 0x80 ? fmt::format("\\x{:02x}", c.code) : fmt::format("\\u{:04x}", c.code);
    } else {
      out.append(text.substr(0, c.size));
    }
    text.remove_prefix(c.size == 0 ? 1 : c.size);
  }
  return out;
}

}  // namespace embertable::jobs
