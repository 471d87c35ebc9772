#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

#include "base/processor.h"

namespace embertable {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  ///< 0x1edc6f41, its bits reversed

/// Contribution of each byte to the sum when it is shifted out.
constexpr std::array<std::uint32_t, 256> kOfByte = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum % 2 != 0 ? kPolynomial : 0);
    table[byte] = sum;
  }
  return table;
}();

/// Uses the instruction that shifts eight bytes at once.
__attribute__((target("sse4.2,crc32"))) std::uint32_t extend_by_instruction(
    std::uint32_t sum, std::span<const std::byte> bytes) noexcept {
  std::uint64_t inverse = ~sum;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    inverse = _mm_crc32_u64(inverse, eight);
  }
  auto rest = static_cast<std::uint32_t>(inverse);
  for (const std::byte byte : bytes) rest = _mm_crc32_u8(rest, static_cast<std::uint8_t>(byte));
  return ~rest;
}

const bool kHasInstruction = processor_has(Instructions::kSse42);

}  // namespace

std::uint32_t extend_crc32c_by_table(std::uint32_t sum, std::span<const std::byte> bytes) noexcept {
  sum = ~sum;
  for (const std::byte byte : bytes)
    sum = (sum >> 8) ^ kOfByte[(sum ^ static_cast<std::uint8_t>(byte)) & 0xff];
  return ~sum;
}

std::uint32_t extend_crc32c(std::uint32_t sum, std::span<const std::byte> bytes) noexcept {
  if (kHasInstruction) return extend_by_instruction(sum, bytes);
  return extend_crc32c_by_table(sum, bytes);
}

std::uint32_t crc32c(std::string_view bytes) noexcept {
  return extend_crc32c(0, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace embertable
