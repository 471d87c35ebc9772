#include "apps/jobs/data/binary_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace embertable::jobs {
namespace {

// The file has "EMBCACHE", a number that changes with the format, the key, the values, and 32
// digits of XXH3-128 of everything before. A vector is its length and its elements.
constexpr std::array<char, 16> kMagic = {'E', 'M', 'B', 'C', 'A', 'C', 'H', 'E', 2};
constexpr std::size_t kDigits = 32;
constexpr std::size_t kCheckedBytes = 1 << 20;

std::string name_until_complete(const std::string& path) { return path + ".new"; }

/// True if an open file has this name, and no other writer has renamed or removed it.
bool is_named(int descriptor, const std::string& path) {
  struct stat held = {}, named = {};
  return ::fstat(descriptor, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/// Opens an empty file that stays locked until it is closed. Null if another holds it.
StdFile open_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return {nullptr, std::fclose};
  StdFile file(::fdopen(descriptor, "wb"), std::fclose);
  if (!file) ::close(descriptor);
  if (file && (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || !is_named(descriptor, path) ||
               ::ftruncate(descriptor, 0) != 0))
    file.reset();
  return file;
}

}  // namespace

BinaryWriter::BinaryWriter(const std::string& path, const std::string& key)
    : path_(path), file_(open_locked(name_until_complete(path))), good_(file_ != nullptr) {
  put(kMagic);
  put(key);
}

BinaryWriter::~BinaryWriter() {
  const std::string name = name_until_complete(path_);
  if (file_ && is_named(::fileno(file_.get()), name)) ::unlink(name.c_str());
}

void BinaryWriter::bytes(std::span<const std::byte> bytes) {
  if (!good_) return;
  hasher_.update(bytes);
  good_ = std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
}

bool BinaryWriter::finish() {
  const std::string digits = hasher_.hex();
  bytes(std::as_bytes(std::span(digits)));
  return good_ && std::fflush(file_.get()) == 0 && fsync(fileno(file_.get())) == 0 &&
         std::rename(name_until_complete(path_).c_str(), path_.c_str()) == 0;
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
