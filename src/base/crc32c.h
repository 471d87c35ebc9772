#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace embertable {

/// CRC-32C (Castagnoli) of some bytes, as iSCSI, ext4 and TFRecord files have it. Source: RFC 3720,
/// appendix B.4.
std::uint32_t crc32c(std::string_view bytes) noexcept;

/// The sum of bytes whose first part has the sum `sum` (no bytes have 0) and whose rest is `bytes`.
std::uint32_t extend_crc32c(std::uint32_t sum, std::span<const std::byte> bytes) noexcept;

/// The same by a table of 256 entries, whatever the machine can do.
std::uint32_t extend_crc32c_by_table(std::uint32_t sum, std::span<const std::byte> bytes) noexcept;

/// How TFRecord files and sorted string tables store a sum, so that the sum of bytes that hold sums
/// is of use. Source: LevelDB, util/crc32c.h, Mask.
constexpr std::uint32_t masked_crc32c(std::uint32_t sum) noexcept {
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

/// The sum that `masked` was made of.
constexpr std::uint32_t unmasked_crc32c(std::uint32_t masked) noexcept {
  const std::uint32_t turned = masked - 0xa282ead8u;
  return (turned << 15) | (turned >> 17);
}

}  // namespace embertable
