// Reads tensors of strings: lengths, their checksum, and then the texts.
#include <fmt/format.h>

#include <algorithm>
#include <protozero/varint.hpp>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/stored_tensors.h"

namespace embertable::formats {
namespace {

/// Returns "the bytes ff ff", with the first bytes if there are many.
std::string bytes_text(std::string_view bytes) {
  constexpr std::size_t kShown = 10;  // the longest varint has 10 bytes
  if (bytes.empty()) return "none";
  std::string text = "the bytes";
  for (const char byte : bytes.substr(0, kShown))
    text += fmt::format(" {:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

/// Returns the lengths with which `bytes` begins, checked. Sets `rest` to what follows them and
/// their checksum, and `sum` to the checksum of lengths and all of the rest.
std::vector<std::uint64_t> StoredTensors::read_lengths(const StoredTensor& tensor,
                                                       const BundleEntry& entry,
                                                       std::string_view bytes,
                                                       std::string_view& rest,
                                                       std::uint32_t& sum) const {
  const auto count = static_cast<std::uint64_t>(*element_count(tensor.entry.shape));
  if (count > bytes.size())
    damage(tensor.key, fmt::format("{} strings need a byte each at least, got {} bytes, {}", count,
                                   bytes.size(), place_text(entry)));
  std::vector<std::uint64_t> lengths(count);
  LengthSum of_lengths(header_.endianness != 0);
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  const auto place = [&] { return place_text(entry, at - bytes.data()); };
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    try {
      lengths[i] = protozero::decode_varint(&at, end);
    } catch (const protozero::exception&) {
      damage(tensor.key,
             fmt::format("expected the length of string {} of {} as a varint, got {}, {}", i, count,
                         bytes_text({at, end}), place()));
    }
    of_lengths.add(lengths[i]);
  }
  constexpr std::ptrdiff_t kSumBytes = 4;
  if (end - at < kSumBytes) {
    damage(tensor.key,
           fmt::format("expected the {} bytes of the checksum of its strings' lengths, got {}, {}",
                       kSumBytes, end - at, place()));
  }
  std::string bytes_of_sum(at, kSumBytes);
  if (header_.endianness != 0) std::reverse(bytes_of_sum.begin(), bytes_of_sum.end());
  const auto stored = load_little_endian<std::uint32_t>(bytes_of_sum.data());
  if (stored != masked_crc32c(of_lengths.sum())) {
    damage(tensor.key,
           fmt::format("The length checksum does not match: stored {:08x}, calculated {:08x}, {}",
                       stored, masked_crc32c(of_lengths.sum()), place()));
  }
  sum = extend_crc32c(of_lengths.sum(), std::as_bytes(std::span(at, end)));
  rest = {at + kSumBytes, end};
  return lengths;
}

std::vector<std::string> StoredTensors::read_strings(StoredTensor& tensor) {
  const BundleEntry& entry = part(tensor, 0);
  std::string bytes(entry.size, '\0');
  if (file(tensor.key, entry.shard)
          .read(entry.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))) !=
      bytes.size())
    throw_shrunk(tensor.key, entry);
  std::string_view rest;
  std::uint32_t sum = 0;
  const std::vector<std::uint64_t> lengths = read_lengths(tensor, entry, bytes, rest, sum);
  if (masked_crc32c(sum) != entry.masked_sum) {
    damage(tensor.key, fmt::format("Checksum does not match: stored {:08x}, calculated {:08x}, {}",
                                   entry.masked_sum, masked_crc32c(sum), place_text(entry)));
  }
  const auto place = [&] { return place_text(entry, entry.size - std::ssize(rest)); };
  std::vector<std::string> found;
  for (const std::uint64_t length : lengths) {
    if (length > rest.size()) {
      damage(tensor.key, fmt::format("expected the {} bytes of string {} of {}, got {}, {}", length,
                                     found.size(), lengths.size(), rest.size(), place()));
    }
    found.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.empty()) {
    damage(tensor.key, fmt::format("expected its end behind {} strings, got {} bytes more, {}",
                                   found.size(), rest.size(), place()));
  }
  return found;
}

}  // namespace embertable::formats
