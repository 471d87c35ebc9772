#pragma once

#include <cstdint>
#include <filesystem>

namespace embertable::bench {

/// An empty folder, whose parent must exist. Removed with all that is in it, by an error too.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::filesystem::path path);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Writes a file of `bytes` bytes in pieces of 1 MiB, and returns once file and name would survive
/// a power loss. Throws std::system_error.
void write_plain(const std::filesystem::path& path, std::int64_t bytes);

/// Where a file is read to: new memory of the file's size, as restored tables have, or one small
/// buffer of each thread again and again, which shows the cost of the file alone.
enum class ReadInto : std::uint8_t { kNewMemory, kReusedBuffer };

/// Reads a file with `threads` threads in pieces of 2 MiB, each a huge page of its own in new
/// memory: threads that share one may both wait for the kernel to clear it. Into a reused buffer
/// the pieces are 256 KiB. Throws std::system_error.
void read_plain(const std::filesystem::path& path, int threads, ReadInto into);

/// Drops the contents of a file, or of all files below a directory, from the kernel's cache. They
/// are flushed first.
void drop_cache(const std::filesystem::path& path);

}  // namespace embertable::bench
