#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace embertable::jobs {

/// A text in UTF-8 may begin with these bytes, which belong to none of its words.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The bytes of a text file, uncompressed, one after the other: plain, gzip (several members) or
/// Zstandard (several frames), told apart by how the file begins. Needs no more memory than the
/// decompressor's window, at most 128 MiB, and reads pipes too. Not to be shared between threads.
class TextSource {
 public:
  /// Throws IoError naming the file if it cannot be opened.
  explicit TextSource(std::string path);
  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) noexcept;

  /// Puts the next bytes into out; how many, 0 only at the end. Throws IoError if reading fails or
  /// a frame wants a greater window, DataLoss for compressed data that ends early, fails its
  /// checksum or is followed by something else. size >= 1.
  std::int64_t read(char* out, std::int64_t size);

  const std::string& path() const noexcept { return path_; }

  /// How a file is compressed, and the file as it is.
  class Decoder;
  class Input;

 private:
  std::string path_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace embertable::jobs
