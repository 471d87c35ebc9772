#include "base/crc32c.h"

#include <array>

namespace embertable {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  ///< 0x1edc6f41, its bits reversed

/// By byte: what it does to the sum when it is shifted out.
constexpr std::array<std::uint32_t, 256> kOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum % 2 != 0 ? kPolynomial : 0);
    table[byte] = sum;
  }
  return table;
}();

}  // namespace

std::uint32_t crc32c(std::string_view bytes) noexcept {
  std::uint32_t sum = ~std::uint32_t{0};
  for (const char byte : bytes)
    sum = (sum >> 8) ^ kOfByte[(sum ^ static_cast<std::uint8_t>(byte)) & 0xff];
  return ~sum;
}

}  // namespace embertable
