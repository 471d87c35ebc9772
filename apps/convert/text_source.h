#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

namespace embertable::jobs {

/// Bytes with which a text in UTF-8 may begin; they belong to none of its words.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Reads the uncompressed bytes of a text file in order: plain, gzip (several members) or Zstandard
/// (several frames), recognized by how the file begins. Needs no more memory than the
/// decompressor's window, at most 128 MiB, and reads pipes too. For one thread at a time.
class TextSource {
 public:
  /// Throws IoError naming the file if it cannot be opened.
  explicit TextSource(std::string path);
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  /// Reads the next bytes into `out` and returns their number, 0 only at the end. Throws IoError if
  /// reading fails or a frame needs a larger window, DataLoss for compressed data that ends early,
  /// fails its checksum or is followed by something else. Requires: size >= 1.
  std::int64_t read(char* out, std::int64_t size);

  const std::string& path() const noexcept { return path_; }

  /// Decompresses one way of compression, or passes the file on as it is.
  class Decoder;
  class Input;

 private:
  std::string path_;
  std::unique_ptr<Decoder> decoder_;
  std::exception_ptr error_;  ///< met after bytes that were read
};

}  // namespace embertable::jobs
