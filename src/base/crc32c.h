#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace embertable {

/// Returns the CRC-32C (Castagnoli) of the bytes, as iSCSI, ext4 and TFRecord files use it. Source:
/// RFC 3720, appendix B.4.
std::uint32_t crc32c(std::string_view bytes) noexcept;

/// Returns the CRC of two parts: `sum` is the CRC of the first (0 if it is empty), `bytes` is the
/// second.
std::uint32_t extend_crc32c(std::uint32_t sum, std::span<const std::byte> bytes) noexcept;

/// Computes the same with a table of 256 entries, on any machine.
std::uint32_t extend_crc32c_by_table(std::uint32_t sum, std::span<const std::byte> bytes) noexcept;

/// Masks a CRC as TFRecord files and sorted string tables store it, so that the CRC of bytes that
/// contain CRCs is still useful. Source: LevelDB, util/crc32c.h, Mask.
constexpr std::uint32_t masked_crc32c(std::uint32_t sum) noexcept {
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

}  // namespace embertable
