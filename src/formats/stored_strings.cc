// Tensors of strings: lengths, their sum, and then the texts.
#include <fmt/format.h>

#include <algorithm>
#include <protozero/varint.hpp>

#include "base/crc32c.h"
#include "formats/bundle_files.h"
#include "formats/stored_tensors.h"
#include "input/little_endian.h"

namespace embertable::formats {

/// The lengths that `bytes` begin with, checked; sets `rest` to what stands behind them and their
/// sum, and `sum` to that of lengths and all of the rest.
std::vector<std::uint64_t> StoredTensors::read_lengths(const StoredTensor& tensor,
                                                       std::string_view bytes,
                                                       std::string_view& rest,
                                                       std::uint32_t& sum) const {
  const auto count = static_cast<std::uint64_t>(*element_count(tensor.entry.shape));
  if (count > bytes.size())
    damage(tensor.key, fmt::format("{} bytes are too few for {} strings", bytes.size(), count));
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(count));
  LengthSum of_lengths(header_.endianness != 0);
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  try {
    for (std::uint64_t& length : lengths) {
      length = protozero::decode_varint(&at, end);
      of_lengths.add(length);
    }
  } catch (const protozero::exception&) {
    damage(tensor.key, "the lengths of its strings are cut off");
  }
  constexpr std::ptrdiff_t kSumBytes = 4;
  if (end - at < kSumBytes) damage(tensor.key, "the lengths of its strings are cut off");
  std::string stored(at, kSumBytes);
  if (header_.endianness != 0) std::reverse(stored.begin(), stored.end());
  if (input::load_little_endian<std::uint32_t>(stored.data()) != masked_crc32c(of_lengths.sum()))
    damage(tensor.key, "The length checksum does not match");
  sum = extend_crc32c(of_lengths.sum(), std::as_bytes(std::span(at, end)));
  rest = {at + kSumBytes, end};
  return lengths;
}

std::vector<std::string> StoredTensors::read_strings(StoredTensor& tensor) {
  const BundleEntry& entry = part(tensor, 0);
  std::string bytes(static_cast<std::size_t>(entry.size), '\0');
  if (file(tensor.key, entry.shard)
          .read(entry.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))) !=
      bytes.size())
    damage(tensor.key, fmt::format("its data file has shrunk, {}", place_text(entry)));
  std::string_view rest;
  std::uint32_t sum = 0;
  const std::vector<std::uint64_t> lengths = read_lengths(tensor, bytes, rest, sum);
  if (masked_crc32c(sum) != entry.masked_sum)
    damage(tensor.key, fmt::format("Checksum does not match, {}", place_text(entry)));
  std::vector<std::string> found;
  for (const std::uint64_t length : lengths) {
    if (length > rest.size()) damage(tensor.key, "its strings are longer than its size");
    found.emplace_back(rest.substr(0, static_cast<std::size_t>(length)));
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  if (!rest.empty()) damage(tensor.key, "its strings are shorter than its size");
  return found;
}

}  // namespace embertable::formats
