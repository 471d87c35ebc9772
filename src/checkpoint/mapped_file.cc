#include "checkpoint/mapped_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "checkpoint/block_file.h"
#include "embertable/errors.h"

namespace embertable::checkpoint {

MappedFile::MappedFile(const File& file, std::filesystem::path path, FileRecord record)
    : path_(std::move(path)),
      record_(std::move(record)),
      map_(file.map()),
      good_(std::make_unique<std::atomic<std::uint64_t>[]>(
          static_cast<std::size_t>(record_.num_blocks() / 64 + 1))) {
  const auto block_bytes = static_cast<std::uint64_t>(record_.block_bytes);
  if (std::has_single_bit(block_bytes)) shift_ = std::countr_zero(block_bytes);
  const std::span<const std::byte> bytes = map_->bytes();
  if (std::ssize(bytes) != record_.bytes)
    throw DataLoss(path_.string() + ": cannot read: has " + std::to_string(bytes.size()) +
                   " bytes, the manifest says " + std::to_string(record_.bytes));
  const auto prefix = static_cast<std::size_t>(record_.tensors.front().offset);
  if (!map_->fetch(0, record_.tensors.front().offset))
    throw DataLoss(path_.string() + ": cannot read: the file has been cut short");
  check_header({reinterpret_cast<const char*>(bytes.data()), prefix}, record_, path_);
}

void MappedFile::check_block(std::int64_t block) const {
  const std::int64_t first = block * record_.block_bytes;
  const std::int64_t size = std::min(record_.block_bytes, record_.bytes - first);
  if (!map_->fetch(first, size))
    throw DataLoss(path_.string() + ": cannot read: block " + std::to_string(block) +
                   " is away: the file has been cut short");
  checkpoint::check_block(block, map_->bytes().subspan(first, size), record_, path_);
  good_[block / 64].fetch_or(std::uint64_t{1} << (block % 64), std::memory_order_release);
}

}  // namespace embertable::checkpoint
