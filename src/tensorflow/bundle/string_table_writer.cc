#include <snappy.h>

#include <algorithm>
#include <protozero/varint.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable::formats {
namespace {

std::size_t common_bytes(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

/// Returns a short text that is not below `last`, and below `next`.
std::string separator(const std::string& last, std::string_view next) {
  const std::size_t common = common_bytes(last, next);
  if (common == last.size() || common == next.size()) return last;
  const auto byte = static_cast<unsigned char>(last[common]);
  if (byte == 0xff || byte + 1 >= static_cast<unsigned char>(next[common])) return last;
  return last.substr(0, common) + static_cast<char>(byte + 1);
}

/// Returns a short text that is not below `last`.
std::string successor(const std::string& last) {
  for (std::size_t i = 0; i < last.size(); ++i) {
    const auto byte = static_cast<unsigned char>(last[i]);
    if (byte != 0xff) return last.substr(0, i) + static_cast<char>(byte + 1);
  }
  return last;
}

std::string handle_of(std::uint64_t offset, std::uint64_t size) {
  std::string handle;
  protozero::write_varint(std::back_inserter(handle), offset);
  protozero::write_varint(std::back_inserter(handle), size);
  return handle;
}

}  // namespace

void StringTableWriter::BlockBytes::add(std::string_view key, std::string_view value,
                                        std::size_t restart_every) {
  const bool restart = restarts.empty() || since_restart == restart_every;
  if (restart) {
    restarts.push_back(static_cast<std::uint32_t>(entries.size()));
    since_restart = 0;
  }
  const std::size_t shared = restart ? 0 : common_bytes(last_key, key);
  for (const std::size_t length : {shared, key.size() - shared, value.size()})
    protozero::write_varint(std::back_inserter(entries), length);
  entries.append(key.substr(shared)).append(value);
  last_key = key;
  ++since_restart;
}

std::string StringTableWriter::BlockBytes::finish() {
  if (restarts.empty()) restarts.push_back(0);
  for (const std::uint32_t restart : restarts) append_little_endian(restart, entries);
  append_little_endian(static_cast<std::uint32_t>(restarts.size()), entries);
  std::string contents = std::move(entries);
  *this = {};
  return contents;
}

void StringTableWriter::add(std::string_view key, std::string_view value) {
  if (!pending_handle_.empty()) index_last_block(separator(last_key_, key));
  if (key.size() + value.size() >= 2 * layout_.block_bytes && !block_.entries.empty()) {
    end_block();
    index_last_block(separator(last_key_, key));
  }
  block_.add(key, value, layout_.restart_every);
  last_key_ = key;
  if (block_.entries.size() + 4 * block_.restarts.size() + 4 >= layout_.block_bytes) end_block();
}

void StringTableWriter::end_block() { pending_handle_ = write_block(block_.finish()); }

void StringTableWriter::index_last_block(std::string_view key) {
  index_.add(key, std::exchange(pending_handle_, {}), 1);
}

/// Writes a block and returns its handle.
std::string StringTableWriter::write_block(std::string contents) {
  if (layout_.type == BlockType::kSnappy) {
    std::string compressed;
    snappy::Compress(contents.data(), contents.size(), &compressed);
    contents = std::move(compressed);
  }
  const std::string handle = handle_of(bytes_.size(), contents.size());
  contents += static_cast<char>(layout_.type);
  append_little_endian(masked_crc32c(crc32c(contents)), contents);
  bytes_ += contents;
  return handle;
}

std::string StringTableWriter::finish() {
  if (!block_.entries.empty()) end_block();
  if (!pending_handle_.empty()) index_last_block(successor(last_key_));
  std::string footer = write_block(BlockBytes().finish());
  footer += write_block(index_.finish());
  footer.resize(kTableFooterBytes - sizeof kTableMagic);
  append_little_endian(kTableMagic, footer);
  return std::move(bytes_.append(footer));
}

}  // namespace embertable::formats
