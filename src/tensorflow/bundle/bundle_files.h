#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable::formats {

/// The version that is written, and the newest that a file may require. Source: TF
/// core/util/tensor_bundle/tensor_bundle.h, kTensorBundleVersion.
inline constexpr std::int32_t kBundleVersion = 1;

/// Maximum length of an index: all of its bytes are in memory while it is read.
inline constexpr std::int64_t kMaxIndexBytes = std::int64_t{1} << 30;

std::filesystem::path index_path(const std::filesystem::path& prefix);

/// Returns "<prefix>.data-00001-of-00003".
std::filesystem::path data_path(const std::filesystem::path& prefix, std::int32_t file,
                                std::int32_t files);

/// True if a file of this name may be a data file of the prefix whose last part is `stem`.
bool is_data_name(std::string_view name, std::string_view stem);

/// Returns the entry under the empty key. Throws DataLoss if there is none, ValueError for a
/// version that cannot be read.
BundleHeader header_of(const StringTable& index, const std::filesystem::path& path);

/// How elements are stored.
struct ElementLayout {
  std::int64_t width = 0;   ///< bytes of one element
  std::int64_t number = 0;  ///< bytes of one number in an element, which is half of a complex one
};
ElementLayout layout_of(BundleDType dtype) noexcept;

/// Reverses the byte order of all numbers.
void swap_bytes(std::span<std::byte> numbers, std::int64_t width);

/// Checksum of the lengths of strings, in the byte order of the machine that stored them.
class LengthSum {
 public:
  explicit LengthSum(bool big_endian) : big_endian_(big_endian) {}
  void add(std::uint64_t length);
  std::uint32_t sum() const noexcept { return sum_; }

 private:
  bool big_endian_;
  std::uint32_t sum_ = 0;
};

}  // namespace embertable::formats
