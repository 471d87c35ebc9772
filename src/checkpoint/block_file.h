#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"

namespace embertable::checkpoint {

/// Throws DataLoss naming `path` unless the header at the start of `prefix` describes the tensors
/// of the record. `prefix` holds all bytes before the data.
void check_header(std::string_view prefix, const FileRecord& record,
                  const std::filesystem::path& path);

/// Throws the DataLoss of a block of the record that fails its checksum.
[[noreturn]] void refuse_block(std::int64_t index, const FileRecord& record,
                               const std::filesystem::path& path);

/// Returns the digits of a block's checksum in the record.
std::string_view hash_of_block(std::int64_t index, const FileRecord& record) noexcept;

/// Throws DataLoss naming `path` and block unless `bytes` match the block's checksum in the record.
void check_block(std::int64_t index, std::span<const std::byte> bytes, const FileRecord& record,
                 const std::filesystem::path& path);

/// Reads a data file block by block and returns no bytes that fail their checksum.
class BlockFile {
 public:
  /// `record` is borrowed; `path` is for messages. Checks that the file has the size and the header
  /// that the record states. Throws IoError; DataLoss naming the file, and the block or tensor.
  BlockFile(std::shared_ptr<const File> file, std::filesystem::path path, const FileRecord& record);

  std::int64_t block_bytes(std::int64_t index) const noexcept;

  /// Fills `out`, which has block_bytes(index) bytes. Throws as `read`; `out` is then unspecified.
  /// Thread-safe.
  void read_block(std::int64_t index, std::span<std::byte> out) const;

  /// Makes the disk begin to read these blocks, as far as they exist.
  void will_read(std::int64_t first, std::int64_t count) const noexcept;

  // The following calls keep the last block and are for one thread.

  /// Reads bytes [offset, offset + out.size()), which lie in the file. Throws IoError, or DataLoss
  /// naming file and block.
  void read(std::int64_t offset, std::span<std::byte> out);

  /// Reads the whole file once and checks the checksum of the whole too.
  void verify();

  /// Gives the file back and keeps the last block. Nothing is read until `reopen`, which takes the
  /// same file.
  void close() noexcept { file_.reset(); }
  void reopen(std::shared_ptr<const File> file) noexcept { file_ = std::move(file); }
  bool is_open() const noexcept { return file_ != nullptr; }

 private:
  friend class BlockRead;
  std::span<const std::byte> block(std::int64_t index);
  std::string prefix();

  std::filesystem::path path_;
  const FileRecord* record_;
  std::shared_ptr<const File> file_;  ///< null: closed
  std::unique_ptr<std::byte[]> buffer_;
  std::int64_t held_ = -1;  ///< index of the block in buffer_
};

/// Reads one block in pieces, so that each is used while it is in cache and before the block's
/// checksum is known.
class BlockRead {
 public:
  BlockRead(std::shared_ptr<const BlockFile> file, std::int64_t index);

  /// Bytes [at(), end()) of the file are still to be read.
  std::int64_t at() const noexcept { return at_; }
  std::int64_t end() const noexcept { return end_; }

  /// Fills `out` with the next bytes of the block, which has at least as many left; the last ones
  /// complete the checksum, which is then compared. Throws IoError, or DataLoss naming file and
  /// block.
  void read(std::span<std::byte> out);

 private:
  std::shared_ptr<const BlockFile> file_;
  std::int64_t index_;
  std::int64_t at_, end_;
  Hasher hasher_;
};

}  // namespace embertable::checkpoint
