#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "checkpoint/file.h"
#include "checkpoint/manifest.h"

namespace embertable::checkpoint {

/// A data file mapped as memory; a block is checked when it is first asked for. Thread-safe: only
/// the notes of which blocks were checked change.
class MappedFile {
 public:
  /// Maps a file and compares size and header with the record; `path` is for messages. Throws
  /// IoError; DataLoss naming the file.
  MappedFile(const File& file, std::filesystem::path path, FileRecord record);

  const std::byte* data() const noexcept { return map_->bytes().data(); }

  /// Compares the checksums of the blocks that hold bytes [offset, offset + size) and have not
  /// passed yet. Requires: size >= 1. Throws DataLoss naming file and block, on every call, also
  /// for a block that was cut off.
  void check(std::int64_t offset, std::int64_t size) const {
    const std::int64_t last = block_of(offset + size - 1);
    for (std::int64_t block = block_of(offset); block <= last; ++block)
      if (!is_good(block)) check_block(block);
  }

  std::int64_t block_bytes() const noexcept { return record_.block_bytes; }

 private:
  std::int64_t block_of(std::int64_t offset) const noexcept {
    return shift_ > 0 ? offset >> shift_ : offset / record_.block_bytes;
  }
  bool is_good(std::int64_t block) const noexcept {
    const std::uint64_t word = good_[block / 64].load(std::memory_order_acquire);
    return (word >> (block % 64) & 1) != 0;
  }
  void check_block(std::int64_t block) const;

  std::filesystem::path path_;
  FileRecord record_;
  std::unique_ptr<FileMap> map_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> good_;  ///< a bit for each block
  int shift_ = 0;  ///< block_bytes is 1 << shift; 0: it is not a power of two
};

}  // namespace embertable::checkpoint
