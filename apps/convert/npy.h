#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/file.h"

namespace embertable::formats {

/// Header of an .npy file, in front of the data. Source: NumPy, numpy/lib/format.py.
struct NpyHeader {
  std::string dtype;  ///< "<f4"
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;  ///< size of the header, in front of the data
};

/// Returns the header of row-major float32 numbers, padded to a multiple of 64 bytes.
std::string npy_header(std::span<const std::int64_t> shape);

/// `start` holds the first bytes of the file, up to kMaxNpyHeaderBytes. Throws DataLoss naming
/// `path` if they are not a header, ValueError for an array that is stored by columns.
NpyHeader parse_npy_header(std::string_view start, const std::filesystem::path& path);
inline constexpr std::size_t kMaxNpyHeaderBytes = 64 << 10;

/// Reads rows first, first + 1, ... of an array until `out` is full.
using ReadRows = std::function<void(std::int64_t first, std::span<float> out)>;

/// Writes a float32 array, row by row. Throws IoError.
void write_npy(checkpoint::FileSystem& files, const std::filesystem::path& path,
               std::span<const std::int64_t> shape, const ReadRows& rows);

/// An .npy file of floating-point numbers, opened to be read by rows.
class NpyFile {
 public:
  /// Throws IoError; DataLoss for a damaged or cut file; ValueError for numbers other than float32
  /// and float16, of either byte order, and for an array that is stored by columns.
  NpyFile(checkpoint::FileSystem& files, const std::filesystem::path& path);

  const std::vector<std::int64_t>& shape() const noexcept { return header_.shape; }

  /// `out` has room for whole rows. Throws IoError, DataLoss.
  void read(std::int64_t first, std::span<float> out) const;

 private:
  void read_numbers(std::int64_t first, std::int64_t number_bytes, std::span<std::byte> out) const;

  std::filesystem::path path_;
  std::unique_ptr<checkpoint::File> file_;
  NpyHeader header_;
  std::int64_t width_ = 0;  ///< numbers in a row
  bool is_half_ = false;
  bool is_swapped_ = false;  ///< big-endian
};

}  // namespace embertable::formats
