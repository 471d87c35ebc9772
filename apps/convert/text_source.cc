#include "apps/convert/text_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kInputBytes = 1 << 18;

[[noreturn]] void refuse_cut_short(const std::string& path) {
  throw DataLoss(fmt::format("'{}': compressed data must be complete, got a file cut short", path));
}

[[noreturn]] void refuse_damaged(const std::string& path, std::string_view text) {
  throw DataLoss(fmt::format("'{}': compressed data must be intact, got: {}", path, text));
}

}  // namespace

/// An uncompressed file, whose next bytes can be examined before they are taken.
class TextSource::Input {
 public:
  explicit Input(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(errno)));
  }
  ~Input() { close(file_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string_view bytes() const noexcept { return {buffer_.data() + begin_, end_ - begin_}; }
  void drop(std::size_t count) noexcept { begin_ += count; }

  /// Reads until `count` bytes can be examined; returns false if the file ends before.
  bool need(std::size_t count) {
    buffer_.resize(kInputBytes);
    while (end_ - begin_ < count) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
      const std::size_t got = read_file(buffer_.data() + end_, buffer_.size() - end_);
      if (got == 0) return false;
      end_ += got;
    }
    return true;
  }

  /// Reads past the buffer. Requires: the buffer is empty.
  std::size_t read_file(char* out, std::size_t size) {
    for (;;) {
      const ssize_t got = ::read(file_, out, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR)
        throw IoError(fmt::format("'{}': cannot read: {}", path_, std::strerror(errno)));
    }
  }

 private:
  std::string path_;
  int file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class TextSource::Decoder {
 public:
  explicit Decoder(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  virtual ~Decoder() = default;

  /// Reads some of the next bytes, perhaps few: a compressed file may be of many small parts.
  virtual std::size_t read(char* out, std::size_t size) = 0;

  /// True if more can be read without waiting for the file.
  bool holds_input() const noexcept { return !input_->bytes().empty(); }

 protected:
  std::unique_ptr<Input> input_;
};

namespace {

class PlainText : public TextSource::Decoder {
 public:
  using Decoder::Decoder;
  std::size_t read(char* out, std::size_t size) override {
    const std::string_view held = input_->bytes();
    if (held.empty()) return input_->read_file(out, size);
    const std::size_t count = std::min(size, held.size());
    std::memcpy(out, held.data(), count);
    input_->drop(count);
    return count;
  }
};

constexpr std::string_view kGzipMagic = "\x1f\x8b";

class GzipText : public TextSource::Decoder {
 public:
  explicit GzipText(std::unique_ptr<TextSource::Input> input) : Decoder(std::move(input)) {
    constexpr int kOnlyGzip = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kOnlyGzip) != Z_OK) throw std::bad_alloc();
  }
  ~GzipText() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (between_members_ && !begin_member()) return 0;
      inflate_some();
    }
    return room - stream_.avail_out;
  }

 private:
  /// Moves to the next member; returns false at the end of the file, which zeros may fill up.
  bool begin_member() {
    if (!input_->need(kGzipMagic.size()) && input_->bytes().empty()) return false;
    if (input_->bytes().starts_with(kGzipMagic)) {
      inflateReset(&stream_);
      between_members_ = false;
      return true;
    }
    while (input_->need(1)) {
      if (input_->bytes().find_first_not_of('\0') != std::string_view::npos)
        refuse_damaged(input_->path(), "other bytes after its end");
      input_->drop(input_->bytes().size());
    }
    return false;
  }

  void inflate_some() {
    if (!input_->need(1)) refuse_cut_short(input_->path());
    const std::string_view held = input_->bytes();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(held.data()));
    stream_.avail_in = static_cast<uInt>(held.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_->drop(held.size() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK) {
      refuse_damaged(input_->path(),
                     stream_.msg != nullptr ? stream_.msg : "a stream that does not go on");
    }
  }

  z_stream stream_ = {};
  bool between_members_ = true;
};

constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

bool begins_zstd_frame(std::string_view bytes) {
  // The latter begins a frame that decoders skip.
  return bytes.starts_with(kZstdMagic) ||
         (bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18");
}

class ZstdText : public TextSource::Decoder {
 public:
  explicit ZstdText(std::unique_ptr<TextSource::Input> input)
      : Decoder(std::move(input)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~ZstdText() override { ZSTD_freeDStream(stream_); }

  std::size_t read(char* out, std::size_t size) override {
    ZSTD_outBuffer to = {out, size, 0};
    while (to.pos == 0) {
      // At the end of the input, the decompressor still returns what it holds.
      const bool more = input_->need(1);
      if (!more && within_frame_ == 0) return 0;
      if (within_frame_ == 0 && input_->need(4) && !begins_zstd_frame(input_->bytes()))
        refuse_damaged(input_->path(), "other bytes after its end");
      const std::string_view held = input_->bytes();
      ZSTD_inBuffer from = {held.data(), held.size(), 0};
      within_frame_ = ZSTD_decompressStream(stream_, &to, &from);
      if (ZSTD_isError(within_frame_) != 0) refuse();
      input_->drop(from.pos);
      if (!more && within_frame_ != 0 && to.pos == 0) refuse_cut_short(input_->path());
    }
    return to.pos;
  }

 private:
  [[noreturn]] void refuse() {
    const char* const text = ZSTD_getErrorName(within_frame_);
    if (ZSTD_getErrorCode(within_frame_) == ZSTD_error_frameParameter_windowTooLarge) {
      throw IoError(fmt::format(
          "'{}': its window must be at most 128 MiB (zstd without --long=28 and more), got: {}",
          input_->path(), text));
    }
    refuse_damaged(input_->path(), text);
  }

  ZSTD_DStream* stream_;
  std::size_t within_frame_ = 0;  ///< 0 between frames
};

}  // namespace

TextSource::TextSource(std::string path) : path_(std::move(path)) {
  auto input = std::make_unique<Input>(path_);
  input->need(4);
  const std::string_view begin = input->bytes();
  try {
    if (begin.starts_with(kGzipMagic)) {
      decoder_ = std::make_unique<GzipText>(std::move(input));
    } else if (begins_zstd_frame(begin)) {
      decoder_ = std::make_unique<ZstdText>(std::move(input));
    } else {
      decoder_ = std::make_unique<PlainText>(std::move(input));
    }
  } catch (const IoError& error) {  // a library that is loaded only now and is missing
    throw IoError(fmt::format("'{}': {}", path_, error.what()));
  }
}

TextSource::~TextSource() = default;
TextSource::TextSource(TextSource&&) noexcept = default;
TextSource& TextSource::operator=(TextSource&&) noexcept = default;

/// Fills `out` as far as the input that is held allows. The work of a caller for each read is then
/// in proportion to the bytes of the file.
std::int64_t TextSource::read(char* out, std::int64_t size) {
  if (error_) std::rethrow_exception(error_);
  const auto room = static_cast<std::size_t>(size);
  std::size_t filled = decoder_->read(out, room);
  while (filled > 0 && filled < room && decoder_->holds_input()) {
    try {
      const std::size_t got = decoder_->read(out + filled, room - filled);
      if (got == 0) break;
      filled += got;
    } catch (const IoError&) {  // what was read before it comes first
      error_ = std::current_exception();
      break;
    }
  }
  return static_cast<std::int64_t>(filled);
}

}  // namespace embertable::jobs
