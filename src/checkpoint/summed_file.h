#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/hash.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/piped_file.h"

namespace embertable::checkpoint {

/// A new file that is summed, as a whole and by block, while it is written.
class SummedFile {
 public:
  /// Throws IoError if it exists.
  SummedFile(FileSystem& files, const std::filesystem::path& path) : file_(files, path) {}

  /// Memory for the next bytes, kChunkBytes of PipedFile, to be filled and sent. Throws IoError if
  /// an earlier write failed.
  std::span<std::byte> chunk() { return file_.chunk(); }

  /// Appends the first bytes of that memory, which is `chunk`.
  void send(std::span<std::byte> chunk, std::size_t bytes);

  /// Appends bytes from elsewhere.
  void write(std::span<const std::byte> bytes);

  /// Returns once everything would survive a loss of power; gives bytes, xxh128 and blocks of the
  /// record. Nothing is written afterwards.
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
