#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable::formats {

/// The version that is written, and the newest that a file may ask for. Source: TF
/// core/util/tensor_bundle/tensor_bundle.h, kTensorBundleVersion.
inline constexpr std::int32_t kBundleVersion = 1;

/// No index is longer: each of its bytes is in memory while it is read.
inline constexpr std::int64_t kMaxIndexBytes = std::int64_t{1} << 30;

std::filesystem::path index_path(const std::filesystem::path& prefix);

/// "<prefix>.data-00001-of-00003".
std::filesystem::path data_path(const std::filesystem::path& prefix, std::int32_t file,
                                std::int32_t files);

/// True if a file of this name may be a data file of the prefix whose last part is `stem`.
bool is_data_name(std::string_view name, std::string_view stem);

/// The entry under the empty key. Throws DataLoss if there is none, ValueError for a version that
/// is not read.
BundleHeader header_of(const StringTable& index, const std::filesystem::path& path);

/// How elements are stored.
struct ElementLayout {
  std::int64_t width = 0;   ///< bytes of one
  std::int64_t number = 0;  ///< bytes of one number in it: half a complex one
};
ElementLayout layout_of(BundleDType dtype) noexcept;

/// Other byte order for all numbers.
void swap_bytes(std::span<std::byte> numbers, std::int64_t width);

/// The sum of the lengths of strings, each as the machine of this byte order has it.
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
