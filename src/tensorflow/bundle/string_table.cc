#include "tensorflow/bundle/string_table.h"

#include <fmt/format.h>
#include <snappy.h>

#include <algorithm>
#include <protozero/varint.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "embertable/errors.h"

namespace embertable::formats {
namespace {

constexpr std::size_t kTrailerBytes = 5;  ///< type and checksum
constexpr std::size_t kRestartBytes = 4;

/// Limit of the keys' total length as a multiple of the file's, because keys may share bytes.
constexpr std::size_t kMaxKeyRatio = 64;

/// Maximum ratio of a Snappy block: its longest copy makes 64 bytes of 3.
constexpr std::size_t kMaxSnappyRatio = 22;

/// Removes the number at the front and returns it. Throws BadEntry.
std::uint64_t take_varint(std::string_view& rest) {
  const char* at = rest.data();
  try {
    const std::uint64_t number = protozero::decode_varint(&at, rest.data() + rest.size());
    rest.remove_prefix(at - rest.data());
    return number;
  } catch (const protozero::exception&) {
    throw BlockCursor::BadEntry();
  }
}

/// Removes and returns a length, which the rest must have.
std::size_t take_length(std::string_view& rest) {
  const std::uint64_t length = take_varint(rest);
  if (length > 0xffffffffu) throw BlockCursor::BadEntry();
  return static_cast<std::size_t>(length);
}

std::uint32_t sum_of(std::string_view block_and_type) {
  return masked_crc32c(crc32c(block_and_type));
}

}  // namespace

bool BlockCursor::next() {
  std::string_view rest = entries_.substr(end_);
  if (rest.empty()) return false;
  offset_ = end_;
  shared_ = take_length(rest);
  const std::size_t unshared = take_length(rest);
  const std::size_t value = take_length(rest);
  if (shared_ > key_.size() || unshared > rest.size() || value > rest.size() - unshared)
    throw BadEntry();
  const std::string_view own = rest.substr(0, unshared);
  if (own < std::string_view(key_).substr(shared_)) throw BadEntry();
  key_.resize(shared_);
  key_.append(own);
  value_ = rest.substr(unshared, value);
  end_ = entries_.size() - (rest.size() - unshared - value);
  return true;
}

StringTable::StringTable(std::string bytes, std::filesystem::path path)
    : bytes_(std::move(bytes)), path_(std::move(path)) {
  if (bytes_.size() < kTableFooterBytes)
    refuse(fmt::format("file of {} bytes is too short to be an sstable", bytes_.size()));
  const auto magic = load_little_endian<std::uint64_t>(&bytes_[bytes_.size() - 8]);
  if (magic != kTableMagic) refuse(fmt::format("not an sstable (bad magic number {:016x})", magic));
  read_blocks();
}

void StringTable::refuse(const std::string& what) const {
  throw DataLoss(fmt::format("{}: cannot read: {}", path_.string(), what));
}

void StringTable::refuse_block(std::uint64_t offset, const std::string& what) const {
  refuse(fmt::format("bad entry in block at byte {}: {}", offset, what));
}

/// Returns the block of a handle, which begins at `end` or later; moves `end` to its end.
StringTable::Block StringTable::read_block(std::string_view handle, std::uint64_t& end) {
  std::uint64_t offset = 0, size = 0;
  try {
    offset = take_varint(handle);
    size = take_varint(handle);
  } catch (const BlockCursor::BadEntry&) {
    refuse(fmt::format("bad entry in block: no place of a block behind byte {}", end));
  }
  const std::uint64_t room = bytes_.size() - kTableFooterBytes;
  if (offset > room || size > room - offset || room - offset - size < kTrailerBytes)
    refuse(
        fmt::format("truncated block read (byte {}, {} bytes of {})", offset, size, bytes_.size()));
  if (offset < end) refuse_block(offset, "it overlaps the block before");
  const std::string_view block = std::string_view(bytes_).substr(offset, size + 1);
  const char* sum = bytes_.data() + offset + size + 1;
  if (load_little_endian<std::uint32_t>(sum) != sum_of(block))
    refuse(fmt::format("block checksum mismatch (byte {})", offset));
  end = offset + size + kTrailerBytes;
  const auto type = static_cast<BlockType>(block.back());
  return take_apart(contents_of(block.substr(0, size), type, offset), offset);
}

/// Returns the contents of a block, decompressed if necessary.
std::string_view StringTable::contents_of(std::string_view block, BlockType type,
                                          std::uint64_t offset) {
  if (type == BlockType::kPlain) return block;
  if (type != BlockType::kSnappy)
    refuse(fmt::format("bad block type {} (byte {})", static_cast<int>(type), offset));
  std::size_t size = 0;
  const bool known = snappy::GetUncompressedLength(block.data(), block.size(), &size);
  if (known && size <= block.size() * kMaxSnappyRatio) {
    std::string& contents = decompressed_.emplace_back(size, '\0');
    if (snappy::RawUncompress(block.data(), block.size(), contents.data())) return contents;
  }
  refuse(fmt::format("corrupted compressed block contents (byte {})", offset));
}

StringTable::Block StringTable::take_apart(std::string_view contents, std::uint64_t offset) const {
  if (contents.size() < kRestartBytes) refuse_block(offset, "no restarts");
  const char* last = contents.data() + contents.size() - kRestartBytes;
  const std::size_t count = load_little_endian<std::uint32_t>(last);
  if (count == 0 || count > contents.size() / kRestartBytes - 1)
    refuse_block(offset, fmt::format("{} restarts in {} bytes", count, contents.size()));
  Block block{.offset = offset,
              .entries = contents.substr(0, contents.size() - (count + 1) * kRestartBytes),
              .restarts = {}};
  for (std::size_t i = 0; i < count; ++i)
    block.restarts.push_back(load_little_endian<std::uint32_t>(
        contents.data() + block.entries.size() + i * kRestartBytes));
  return block;
}

/// Moves to the next entry of a block.
bool StringTable::next(BlockCursor& entry, const Block& block) const {
  try {
    return entry.next();
  } catch (const BlockCursor::BadEntry&) {
    refuse_block(block.offset,
                 fmt::format("the entry {} bytes in is cut off or does not rise", entry.offset()));
  }
}

void StringTable::read_blocks() {
  std::string_view footer = std::string_view(bytes_).substr(bytes_.size() - kTableFooterBytes);
  try {
    take_varint(footer), take_varint(footer);  // the metaindex is not read
  } catch (const BlockCursor::BadEntry&) {
    refuse("bad entry in block: the footer has no place of the index");
  }
  std::uint64_t end = 0;
  const Block index = read_block(footer, end);
  end = 0;
  std::string last_key;
  std::size_t key_bytes = 0;
  BlockCursor entry(index.entries);
  while (next(entry, index)) {
    Block block = read_block(entry.value(), end);
    check(block, entry.key(), last_key, key_bytes);
    if (!block.entries.empty()) blocks_.push_back(std::move(block));
  }
}

/// Walks a block whose keys do not come before `last`, and sets `last` to its last key, which does
/// not come after `index_key`. Adds up the bytes of keys.
void StringTable::check(const Block& block, std::string_view index_key, std::string& last,
                        std::size_t& key_bytes) const {
  if (block.entries.empty()) return;
  std::size_t restart = 0;
  BlockCursor entry(block.entries);
  while (next(entry, block)) {
    key_bytes += entry.key().size();
    if (entry.offset() == 0 && entry.key() < last) refuse_block(block.offset, "keys fall");
    if (restart == block.restarts.size() || block.restarts[restart] != entry.offset()) continue;
    if (entry.shared() != 0) refuse_block(block.offset, "a restart shares bytes");
    ++restart;
  }
  if (key_bytes > bytes_.size() * kMaxKeyRatio)
    refuse_block(block.offset, "keys are many times as long as the file");
  if (restart < block.restarts.size()) refuse_block(block.offset, "a restart is no entry");
  if (block.restarts.front() != 0) refuse_block(block.offset, "the first entry is no restart");
  if (entry.key() > index_key) refuse_block(block.offset, "a key is behind that of the index");
  last = entry.key();
}

std::string_view StringTable::key_at(const Block& block, std::size_t restart) {
  std::string_view rest = block.entries.substr(block.restarts[restart]);
  take_length(rest);
  const std::size_t unshared = take_length(rest);
  take_length(rest);
  return rest.substr(0, unshared);
}

std::optional<std::string_view> StringTable::find(std::string_view key) const {
  // The first key that is equal follows the last restart, in the last block, whose key is less.
  auto block = std::partition_point(blocks_.begin(), blocks_.end(),
                                    [&](const Block& one) { return first_key(one) < key; });
  if (block != blocks_.begin()) --block;
  for (; block != blocks_.end() && first_key(*block) <= key; ++block) {
    std::size_t low = 0, high = block->restarts.size();
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (key_at(*block, middle) < key ? low : high) = middle;
    }
    BlockCursor entry(block->entries.substr(block->restarts[low]));
    while (entry.next()) {
      if (entry.key() == key) return entry.value();
      if (entry.key() > key) return std::nullopt;
    }
  }
  return std::nullopt;
}

void StringTable::each(const Visit& visit) const {
  for (const Block& block : blocks_) {
    BlockCursor entry(block.entries);
    while (entry.next()) visit(entry.key(), entry.value());
  }
}

}  // namespace embertable::formats
