#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"

namespace embertable::checkpoint {

/// Throws DataLoss naming `path` unless the header that starts `prefix` tells the tensors of the
/// record. `prefix` holds all bytes before the data.
void check_header(std::string_view prefix, const FileRecord& record,
                  const std::filesystem::path& path);

/// Throws DataLoss that says so of a block of the record.
[[noreturn]] void refuse_block(std::int64_t index, const FileRecord& record,
                               const std::filesystem::path& path);

/// The digits that the record has for a block.
std::string_view hash_of_block(std::int64_t index, const FileRecord& record) noexcept;

/// Throws DataLoss naming `path` and block unless `bytes` are those of the record's block.
void check_block(std::int64_t index, std::span<const std::byte> bytes, const FileRecord& record,
                 const std::filesystem::path& path);

/// Reads a data file block by block and gives nothing that fails its checksum.
class BlockFile {
 public:
  /// `record` is borrowed. Checks at once that the file has the size and the header that the record
  /// tells. Throws IoError if it cannot be opened; DataLoss naming the file, and the block or
  /// tensor.
  BlockFile(FileSystem& files, const std::filesystem::path& directory, const FileRecord& record);

  std::int64_t block_bytes(std::int64_t index) const noexcept;

  /// Fills `out`, of block_bytes(index) bytes. Errors as `read`; out is then unspecified. Any
  /// number of threads.
  void read_block(std::int64_t index, std::span<std::byte> out) const;

  /// Has the disk begin to read these blocks, those of them that there are.
  void will_read(std::int64_t first, std::int64_t count) const noexcept;

  // For one thread: the last block is kept.

  /// Bytes [offset, offset + out.size()), which lie in the file. Throws IoError, or DataLoss naming
  /// file and block.
  void read(std::int64_t offset, std::span<std::byte> out);

  /// Reads everything once and checks the sum of the whole too.
  void verify();

 private:
  friend class BlockRead;
  std::span<const std::byte> block(std::int64_t index);
  std::string prefix();

  std::filesystem::path path_;
  const FileRecord* record_;
  std::unique_ptr<File> file_;
  std::unique_ptr<std::byte[]> buffer_;
  std::int64_t held_ = -1;  ///< index of the block in buffer_
};

/// A block that is read by pieces, each to be taken while it is in cache and before the block's
/// checksum is known.
class BlockRead {
 public:
  BlockRead(std::shared_ptr<const BlockFile> file, std::int64_t index);

  /// Bytes [at(), end()) of the file are still to be read.
  std::int64_t at() const noexcept { return at_; }
  std::int64_t end() const noexcept { return end_; }

  /// Fills `out` with the next bytes, of which there are as many; with the last ones the checksum
  /// is compared. Throws IoError, or DataLoss naming file and block.
  void read(std::span<std::byte> out);

 private:
  std::shared_ptr<const BlockFile> file_;
  std::int64_t index_;
  std::int64_t at_, end_;
  Hasher hasher_;
};

}  // namespace embertable::checkpoint
