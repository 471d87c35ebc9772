#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "checkpoint/file.h"

namespace embertable::checkpoint {

/// A new file that a thread of its own writes while the caller produces the next bytes. A file that
/// fits into one chunk needs no thread.
class PipedFile {
 public:
  /// Small enough that a chunk is still in the second-level cache when its checksum is computed.
  static constexpr std::size_t kChunkBytes = 256 << 10;

  /// `file` is new and empty.
  explicit PipedFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  ~PipedFile();
  PipedFile(const PipedFile&) = delete;
  PipedFile& operator=(const PipedFile&) = delete;

  /// Returns a chunk to be filled and sent; waits until one is free. Throws IoError if an earlier
  /// write failed.
  std::span<std::byte> chunk();

  /// Appends the first `bytes` bytes of that chunk.
  void send(std::size_t bytes);

  /// Returns once the whole file would survive a power loss. Nothing may be sent afterwards. Throws
  /// IoError.
  void finish();

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  static constexpr std::int64_t kChunks = 4;

  Chunk& at(std::int64_t number) { return chunks_[number % kChunks]; }
  void write_pending();
  void write_behind();
  void stop();
  void rethrow();

  std::unique_ptr<File> file_;
  std::array<Chunk, kChunks> chunks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t sent_ = 0;
  std::int64_t written_ = 0;
  bool closing_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace embertable::checkpoint
