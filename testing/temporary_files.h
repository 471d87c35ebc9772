#pragma once

// For tests: a folder of its own that goes when the test ends; compressed texts.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace embertable::jobs {

/// Compresses like `gzip`, one member.
inline std::string gzip(const std::string& text) {
  z_stream stream = {};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2 failed");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// Compresses like `zstd`, one frame with its checksum.
inline std::string zstd(const std::string& text) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return packed;
}

class TemporaryFiles {
 public:
  TemporaryFiles() {
    std::string path = (std::filesystem::temp_directory_path() / "embertable-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = path;
  }
  ~TemporaryFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  std::string path(const std::string& name = "") const { return (root_ / name).string(); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::string write_compressed(const std::string& name, const std::string& content) const {
    return write(name, gzip(content));
  }

 private:
  std::filesystem::path root_;
};

/// What a call throws as an Error, with `root` cut out of the text.
template <class Error, class Call>
std::string refusal(const std::string& root, Call call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text = error.what();
    for (std::size_t at; !root.empty() && (at = text.find(root)) != std::string::npos;)
      text.erase(at, root.size());
    return text;
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace embertable::jobs
