#include "formats/string_table.h"

#include <fmt/format.h>
#include <snappy.h>

#include <algorithm>
#include <protozero/varint.hpp>
#include <utility>

#include "base/crc32c.h"
#include "embertable/errors.h"
#include "input/little_endian.h"

namespace embertable::formats {
namespace {

constexpr std::size_t kTrailerBytes = 5;  ///< type and checksum
constexpr std::size_t kRestartBytes = 4;

/// Keys may share bytes, but never so that they would be as many times as long as the file.
constexpr std::size_t kMaxKeyRatio = 64;

/// No Snappy block holds more: its longest copy makes 64 bytes of 3.
constexpr std::size_t kMaxSnappyRatio = 22;

/// The number at the front, which is taken off. Throws BadEntry.
std::uint64_t take_varint(std::string_view& rest) {
  const char* at = rest.data();
  try {
    const std::uint64_t number = protozero::decode_varint(&at, rest.data() + rest.size());
    rest.remove_prefix(static_cast<std::size_t>(at - rest.data()));
    return number;
  } catch (const protozero::exception&) {
    throw BlockCursor::BadEntry();
  }
}

/// A length of something that the rest holds.
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
  const auto magic = input::load_little_endian<std::uint64_t>(&bytes_[bytes_.size() - 8]);
  if (magic != kTableMagic) refuse(fmt::format("not an sstable (bad magic number {:016x})", magic));
  try {
    read_blocks();
  } catch (const BlockCursor::BadEntry&) {
    refuse("bad entry in block");
  }
}

void StringTable::refuse(const std::string& what) const {
  throw DataLoss(fmt::format("{}: cannot read: {}", path_.string(), what));
}

/// Takes a handle off and gives its block, which begins at `end` or later; moves `end` behind it.
std::string_view StringTable::read_block(std::string_view& handle, std::uint64_t& end) {
  const std::uint64_t offset = take_varint(handle);
  const std::uint64_t size = take_varint(handle);
  const std::uint64_t room = bytes_.size() - kTableFooterBytes;
  if (offset > room || size > room - offset || room - offset - size < kTrailerBytes)
    refuse(
        fmt::format("truncated block read (byte {}, {} bytes of {})", offset, size, bytes_.size()));
  if (offset < end) refuse(fmt::format("bad entry in block: blocks overlap at byte {}", offset));
  const std::string_view block = std::string_view(bytes_).substr(offset, size + 1);
  const char* sum = bytes_.data() + offset + size + 1;
  if (input::load_little_endian<std::uint32_t>(sum) != sum_of(block))
    refuse(fmt::format("block checksum mismatch (byte {})", offset));
  end = offset + size + kTrailerBytes;
  const std::string_view contents = block.substr(0, size);
  switch (static_cast<std::uint8_t>(block.back())) {
    case static_cast<std::uint8_t>(BlockType::kPlain):
      return contents;
    case static_cast<std::uint8_t>(BlockType::kSnappy):
      return decompress(contents);
    default:
      refuse(fmt::format("bad block type {} (byte {})", static_cast<unsigned char>(block.back()),
                         offset));
  }
}

std::string_view StringTable::decompress(std::string_view block) {
  std::size_t size = 0;
  const bool known = snappy::GetUncompressedLength(block.data(), block.size(), &size);
  if (!known || size > block.size() * kMaxSnappyRatio)
    refuse("corrupted compressed block contents");
  std::string& contents = decompressed_.emplace_back(size, '\0');
  if (!snappy::RawUncompress(block.data(), block.size(), contents.data()))
    refuse("corrupted compressed block contents");
  return contents;
}

StringTable::Block StringTable::take_apart(std::string_view contents) const {
  if (contents.size() < kRestartBytes) refuse("bad entry in block: no restarts");
  const char* last = contents.data() + contents.size() - kRestartBytes;
  const std::size_t count = input::load_little_endian<std::uint32_t>(last);
  if (count == 0 || count > contents.size() / kRestartBytes - 1)
    refuse(fmt::format("bad entry in block: {} restarts in {} bytes", count, contents.size()));
  Block block{.entries = contents.substr(0, contents.size() - (count + 1) * kRestartBytes)};
  for (std::size_t i = 0; i < count; ++i)
    block.restarts.push_back(input::load_little_endian<std::uint32_t>(
        contents.data() + block.entries.size() + i * kRestartBytes));
  return block;
}

void StringTable::read_blocks() {
  std::string_view footer = std::string_view(bytes_).substr(bytes_.size() - kTableFooterBytes);
  take_varint(footer), take_varint(footer);  // the metaindex is not read
  std::uint64_t end = 0;
  const Block index = take_apart(read_block(footer, end));
  end = 0;
  std::string last_key;
  std::size_t key_bytes = 0;
  BlockCursor entry(index.entries);
  while (entry.next()) {
    std::string_view handle = entry.value();
    Block block = take_apart(read_block(handle, end));
    check(block, entry.key(), last_key, key_bytes);
    if (!block.entries.empty()) blocks_.push_back(std::move(block));
  }
}

/// Walks a block whose keys do not come before `last`, and moves that to its last one, which does
/// not come behind `index_key`. Adds up the bytes of keys.
void StringTable::check(const Block& block, std::string_view index_key, std::string& last,
                        std::size_t& key_bytes) const {
  if (block.entries.empty()) return;
  std::size_t restart = 0;
  BlockCursor entry(block.entries);
  while (entry.next()) {
    key_bytes += entry.key().size();
    if (entry.offset() == 0 && entry.key() < last) refuse("bad entry in block: keys fall");
    if (restart == block.restarts.size() || block.restarts[restart] != entry.offset()) continue;
    if (entry.shared() != 0) refuse("bad entry in block: a restart shares bytes");
    ++restart;
  }
  if (key_bytes > bytes_.size() * kMaxKeyRatio)
    refuse("bad entry in block: keys are many times as long as the file");
  if (restart < block.restarts.size()) refuse("bad entry in block: a restart is no entry");
  if (block.restarts.front() != 0) refuse("bad entry in block: the first entry is no restart");
  if (entry.key() > index_key) refuse("bad entry in block: a key is behind that of the index");
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
  // The last block, and in it the last restart, whose key is below: the first equal one follows.
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
