#include "apps/jobs/data/binary_file.h"

#include <unistd.h>

#include <algorithm>

namespace embertable::jobs {
namespace {

// The file has "EMBCACHE", a number that changes with the format, the key, the values, and 32
// digits of XXH3-128 of everything before. A vector is its length and its elements.
constexpr std::array<char, 16> kMagic = {'E', 'M', 'B', 'C', 'A', 'C', 'H', 'E', 2};
constexpr std::size_t kDigits = 32;
constexpr std::size_t kCheckedBytes = 1 << 20;

}  // namespace

BinaryWriter::BinaryWriter(const std::string& path, const std::string& key)
    : file_(std::fopen(path.c_str(), "wbx"), std::fclose) {
  put(kMagic);
  put(key);
}

void BinaryWriter::bytes(std::span<const std::byte> bytes) {
  hasher_.update(bytes);
  good_ = good_ && file_ && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
}

bool BinaryWriter::finish() {
  const std::string digits = hasher_.hex();
  bytes(std::as_bytes(std::span(digits)));
  return good_ && std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0;
}

BinaryReader::BinaryReader(const std::string& path, const std::string& key)
    : file_(std::fopen(path.c_str(), "rb"), std::fclose) {
  std::array<char, 16> magic = {};
  get(magic);
  whole_ = whole_ && magic == kMagic;
  std::uint64_t size = 0;
  get(size);
  std::string found(key.size(), '\0');
  if (size == key.size()) bytes(std::as_writable_bytes(std::span(found)));
  whole_ = whole_ && found == key && has_digest();
}

/// True if the file ends with the hash of everything before. Continues after what has been read,
/// and counts what is left.
bool BinaryReader::has_digest() {
  const long begin = std::ftell(file_.get());
  std::rewind(file_.get());
  Hasher hasher;
  std::string held;  // the last digits may be those of the hash
  std::vector<char> part(kCheckedBytes);
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), file_.get())) {
    left_ += got;
    held.append(part.data(), got);
    if (held.size() <= kDigits) continue;
    hasher.update(std::as_bytes(std::span(held).first(held.size() - kDigits)));
    held.erase(0, held.size() - kDigits);
  }
  left_ -= static_cast<std::uint64_t>(begin);
  return std::fseek(file_.get(), begin, SEEK_SET) == 0 && held == hasher.hex();
}

void BinaryReader::bytes(std::span<std::byte> bytes) {
  whole_ =
      whole_ && file_ && std::fread(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
  left_ -= std::min<std::uint64_t>(left_, bytes.size());
}

/// Returns the number of elements that follow. The file must have the bytes of all of them.
std::size_t BinaryReader::count(std::size_t element_bytes) {
  std::uint64_t size = 0;
  get(size);
  whole_ = whole_ && size <= left_ / element_bytes;
  return whole_ ? size : 0;
}

}  // namespace embertable::jobs
