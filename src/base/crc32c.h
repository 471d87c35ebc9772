#pragma once

#include <cstdint>
#include <string_view>

namespace embertable {

/// CRC-32C (Castagnoli) of some bytes, as iSCSI, ext4 and TFRecord files have it. Source: RFC 3720,
/// appendix B.4.
std::uint32_t crc32c(std::string_view bytes) noexcept;

}  // namespace embertable
