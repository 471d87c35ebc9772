#include "bench/others/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory.h"

namespace embertable::bench {
namespace {

constexpr std::int64_t kPiece = 1 << 20;
constexpr std::int64_t kHugePage = 2 << 20;
constexpr std::int64_t kReusedBuffer = 256 << 10;
constexpr std::int64_t kSource = 64 * kPiece;  // written again and again

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw std::system_error(errno, std::generic_category(), path.string());
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (number_ < 0) fail(path);
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(const char* data, std::int64_t bytes) const {
    for (std::int64_t done = 0; done < bytes;) {
      const ssize_t count = ::write(number_, data + done, static_cast<std::size_t>(bytes - done));
      if (count < 0) fail(path_);
      done += count;
    }
  }
  void read(char* data, std::int64_t offset, std::int64_t bytes) const {
    for (std::int64_t done = 0; done < bytes;) {
      const ssize_t count =
          ::pread(number_, data + done, static_cast<std::size_t>(bytes - done), offset + done);
      if (count <= 0) fail(path_);
      done += count;
    }
  }
  void sync() const {
    if (::fsync(number_) != 0) fail(path_);
  }
  void forget() const { ::posix_fadvise(number_, 0, 0, POSIX_FADV_DONTNEED); }
  std::int64_t size() const { return ::lseek(number_, 0, SEEK_END); }

 private:
  std::filesystem::path path_;
  int number_;
};

}  // namespace

ScratchFolder::ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {
  std::filesystem::remove_all(path_);
  std::filesystem::create_directory(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_plain(const std::filesystem::path& path, std::int64_t bytes) {
  static const std::vector<char> source(kSource, 'e');
  const Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (std::int64_t at = 0; at < bytes; at += kPiece)
    file.write(source.data() + at % kSource, std::min(kPiece, bytes - at));
  file.sync();
  Descriptor(path.parent_path(), O_RDONLY | O_DIRECTORY).sync();
}

void read_plain(const std::filesystem::path& path, int threads, ReadInto into) {
  const Descriptor file(path, O_RDONLY);
  const std::int64_t bytes = file.size();
  const bool reused = into == ReadInto::kReusedBuffer;
  const std::int64_t piece = reused ? kReusedBuffer : kHugePage;
  const Mapping memory(reused ? threads * piece : bytes);
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> buffers = 0;
  const auto read_pieces = [&] {
    char* const buffer =
        reinterpret_cast<char*>(memory.data()) + (reused ? buffers.fetch_add(1) * piece : 0);
    for (std::int64_t at; (at = next.fetch_add(piece)) < bytes;)
      file.read(reused ? buffer : buffer + at, at, std::min(piece, bytes - at));
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(read_pieces);
  read_pieces();
  for (std::thread& other : others) other.join();
}

void drop_cache(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) drop_cache(entry.path());
    return;
  }
  const Descriptor file(path, O_RDONLY);
  file.sync();
  file.forget();
}

}  // namespace embertable::bench
