#include "checkpoint/block_file.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/byte_watch.h"
#include "base/hash.h"
#include "checkpoint/safetensors.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {

void check_header(std::string_view prefix, const FileRecord& record,
                  const std::filesystem::path& path) {
  const SafetensorsHeader header = parse_safetensors(prefix, record.bytes, path);
  if (header.tensors != record.tensors)
    throw DataLoss(path.string() + ": cannot read: its header and the manifest differ");
}

void refuse_block(std::int64_t index, const FileRecord& record, const std::filesystem::path& path) {
  const std::int64_t first = index * record.block_bytes;
  const std::int64_t last = std::min(first + record.block_bytes, record.bytes);
  throw DataLoss(path.string() + ": cannot read: block " + std::to_string(index) + " (bytes " +
                 std::to_string(first) + " to " + std::to_string(last) +
                 ") does not match its checksum");
}

std::string_view hash_of_block(std::int64_t index, const FileRecord& record) noexcept {
  return std::string_view(record.blocks_xxh128).substr(static_cast<std::size_t>(index) * 32, 32);
}

void check_block(std::int64_t index, std::span<const std::byte> bytes, const FileRecord& record,
                 const std::filesystem::path& path) {
  const std::int64_t size = std::min(record.block_bytes, record.bytes - index * record.block_bytes);
  if (std::ssize(bytes) != size || hash_hex(bytes) != hash_of_block(index, record))
    refuse_block(index, record, path);
}

BlockFile::BlockFile(std::shared_ptr<const File> file, std::filesystem::path path,
                     const FileRecord& record)
    : path_(std::move(path)), record_(&record), file_(std::move(file)) {
  const std::int64_t bytes = file_->size();
  if (bytes != record.bytes)
    throw DataLoss(path_.string() + ": cannot read: has " + std::to_string(bytes) +
                   " bytes, the manifest says " + std::to_string(record.bytes));
  check_header(prefix(), record, path_);
}

std::string BlockFile::prefix() {
  std::string prefix(record_->tensors.front().offset, '\0');
  read(0, std::as_writable_bytes(std::span(prefix.data(), prefix.size())));
  buffer_.reset();  // many files may be open at once
  held_ = -1;
  return prefix;
}

std::int64_t BlockFile::block_bytes(std::int64_t index) const noexcept {
  return std::min(record_->block_bytes, record_->bytes - index * record_->block_bytes);
}

void BlockFile::read_block(std::int64_t index, std::span<std::byte> out) const {
  const std::int64_t first = index * record_->block_bytes;
  check_block(index, out.first(file_->read(first, out)), *record_, path_);
}

void BlockFile::will_read(std::int64_t first, std::int64_t count) const noexcept {
  const std::int64_t begin = first * record_->block_bytes;
  const std::int64_t end = std::min(begin + count * record_->block_bytes, record_->bytes);
  if (begin < end) file_->will_read(begin, end - begin);
}

std::span<const std::byte> BlockFile::block(std::int64_t index) {
  const auto size = static_cast<std::size_t>(block_bytes(index));
  if (held_ != index) {
    held_ = -1;
    if (!buffer_) {
      const std::int64_t most = std::min(record_->block_bytes, record_->bytes);
      buffer_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(most));
    }
    read_block(index, {buffer_.get(), size});
    held_ = index;
    ByteWatch::done(block_bytes(index));
  }
  return {buffer_.get(), size};
}

void BlockFile::read(std::int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::int64_t index = offset / record_->block_bytes;
    const auto within = static_cast<std::size_t>(offset % record_->block_bytes);
    const std::span<const std::byte> rest = block(index).subspan(within);
    const std::size_t count = std::min(rest.size(), out.size());
    std::memcpy(out.data(), rest.data(), count);
    out = out.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
}

BlockRead::BlockRead(std::shared_ptr<const BlockFile> file, std::int64_t index)
    : file_(std::move(file)),
      index_(index),
      at_(index * file_->record_->block_bytes),
      end_(at_ + file_->block_bytes(index)) {}

void BlockRead::read(std::span<std::byte> out) {
  const BlockFile& file = *file_;
  if (file.file_->read(at_, out) != out.size()) refuse_block(index_, *file.record_, file.path_);
  hasher_.update(out);
  at_ += std::ssize(out);
  if (at_ == end_ && hasher_.hex() != hash_of_block(index_, *file.record_))
    refuse_block(index_, *file.record_, file.path_);
}

void BlockFile::verify() {
  Hasher all;
  for (std::int64_t i = 0; i < record_->num_blocks(); ++i) all.update(block(i));
  if (all.hex() != record_->xxh128)
    throw DataLoss(path_.string() +
                   ": cannot read: the sum of the whole file does not match its checksum");
}

}  // namespace embertable::checkpoint
