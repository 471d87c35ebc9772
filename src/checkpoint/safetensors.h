#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace embertable::checkpoint {

/// A tensor of a `.safetensors` file.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< "F32", "I64", ...: see item_bytes
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< position of its first byte, from the start of the file
  std::int64_t bytes = 0;
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

/// Bytes per element: 1, 2, 4 or 8; 0 for an unknown dtype.
std::int64_t item_bytes(std::string_view dtype) noexcept;

/// Product of shape and item_bytes(dtype); -1 for a negative dim, an unknown dtype or a product
/// beyond 2^63 - 1.
std::int64_t tensor_bytes(std::string_view dtype, const std::vector<std::int64_t>& shape) noexcept;

/// Header of a `.safetensors` file: everything before the data. Source: the format's own
/// description, github.com/huggingface/safetensors, and its reader's checks.
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
  std::vector<StoredTensor> tensors;            ///< in the order of their bytes
  std::int64_t data_offset = 0;                 ///< bytes of the header with its length
};

/// Name that the format reserves.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

/// Alignment of the data in the file.
inline constexpr std::int64_t kDataAlignment = 4096;

/// Maximum length of a header that is read or written; the format's reference reader has the same
/// limit.
inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;

/// Lays the tensors back to back in their order, fills in offset, bytes and data_offset, and
/// returns the bytes before the data. Requires: dtypes and shapes are valid. Throws ValueError for
/// a name that repeats, is `__metadata__` or is not UTF-8, and for a header that is too long.
std::string format_safetensors(SafetensorsHeader& header);

/// Read the length field and the header of a file of `file_bytes` bytes. `text` holds the first
/// bytes of the file: at least 8 for the length, the whole header for parsing. Throw DataLoss
/// naming `path` and the tensor for a header that is too long, breaks the format, or contradicts
/// itself or the size of the file.
std::int64_t safetensors_header_bytes(std::string_view text, std::int64_t file_bytes,
                                      const std::filesystem::path& path);
SafetensorsHeader parse_safetensors(std::string_view text, std::int64_t file_bytes,
                                    const std::filesystem::path& path);

}  // namespace embertable::checkpoint
