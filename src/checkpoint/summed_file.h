#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/hash.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/piped_file.h"

namespace embertable::checkpoint {

/// A new file whose checksums, of the whole and of each block, are computed while it is written.
class SummedFile {
 public:
  /// `file` is new and empty.
  explicit SummedFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  /// Returns memory for the next bytes, kChunkBytes of PipedFile, to be filled and sent. Throws
  /// IoError if an earlier write failed.
  std::span<std::byte> chunk() { return file_.chunk(); }

  /// Appends the first `bytes` bytes of `chunk`, which is the memory that `chunk()` returned.
  void send(std::span<std::byte> chunk, std::size_t bytes);

  /// Appends bytes from other memory.
  void write(std::span<const std::byte> bytes);

  /// Returns once the whole file would survive a power loss; the record has bytes, xxh128 and
  /// blocks filled in. Nothing may be written afterwards.
  FileRecord finish();

 private:
  void sum(std::span<const std::byte> bytes);

  PipedFile file_;
  Hasher all_;
  Hasher block_;
  std::int64_t bytes_ = 0;
  std::string blocks_;
};

}  // namespace embertable::checkpoint
