#include "tensorflow/bundle/stored_strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/varint.hpp>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tensorflow/bundle/bundle_files.h"

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

/// What a stored tensor of strings begins with.
struct StoredLengths {
  std::vector<std::uint64_t> lengths;
  std::string_view texts;  ///< what follows the lengths and their checksum
  std::uint32_t sum = 0;   ///< checksum of lengths and all of the rest
};

/// Reads the lengths and compares their checksum.
StoredLengths read_lengths(const StoredStrings& stored) {
  const std::string_view bytes = stored.bytes;
  if (stored.count > bytes.size())
    stored.refuse(fmt::format("{} strings need a byte each at least, got {} bytes", stored.count,
                              bytes.size()),
                  0);
  StoredLengths read{.lengths = std::vector<std::uint64_t>(stored.count), .texts = {}};
  LengthSum of_lengths(stored.swapped);
  const char* at = bytes.data();
  const char* end = at + bytes.size();
  const auto refuse = [&](const std::string& what) { stored.refuse(what, at - bytes.data()); };
  for (std::size_t i = 0; i < read.lengths.size(); ++i) {
    try {
      read.lengths[i] = protozero::decode_varint(&at, end);
    } catch (const protozero::exception&) {
      refuse(fmt::format("expected the length of string {} of {} as a varint, got {}", i,
                         stored.count, bytes_text({at, end})));
    }
    of_lengths.add(read.lengths[i]);
  }
  constexpr std::ptrdiff_t kSumBytes = 4;
  if (end - at < kSumBytes)
    refuse(fmt::format("expected the {} bytes of the checksum of its strings' lengths, got {}",
                       kSumBytes, end - at));
  std::string bytes_of_sum(at, kSumBytes);
  if (stored.swapped) std::reverse(bytes_of_sum.begin(), bytes_of_sum.end());
  const auto stored_sum = load_little_endian<std::uint32_t>(bytes_of_sum.data());
  if (stored_sum != masked_crc32c(of_lengths.sum()))
    refuse(fmt::format("The length checksum does not match: stored {:08x}, calculated {:08x}",
                       stored_sum, masked_crc32c(of_lengths.sum())));
  read.sum = extend_crc32c(of_lengths.sum(), std::as_bytes(std::span(at, end)));
  read.texts = {at + kSumBytes, end};
  return read;
}

}  // namespace

std::vector<std::string> strings_of(const StoredStrings& stored) {
  const auto [lengths, texts, sum] = read_lengths(stored);
  if (masked_crc32c(sum) != stored.masked_sum)
    stored.refuse(fmt::format("Checksum does not match: stored {:08x}, calculated {:08x}",
                              stored.masked_sum, masked_crc32c(sum)),
                  0);
  std::string_view rest = texts;
  const auto refuse = [&](const std::string& what) {
    stored.refuse(what, std::ssize(stored.bytes) - std::ssize(rest));
  };
  std::vector<std::string> found;
  for (const std::uint64_t length : lengths) {
    if (length > rest.size())
      refuse(fmt::format("expected the {} bytes of string {} of {}, got {}", length, found.size(),
                         lengths.size(), rest.size()));
    found.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.empty())
    refuse(fmt::format("expected its end behind {} strings, got {} bytes more", found.size(),
                       rest.size()));
  return found;
}

}  // namespace embertable::formats
