#include "input/key_index.h"

#include <xxhash.h>

#include "base/bytes.h"
#include "base/hash.h"

namespace embertable::input {

std::uint64_t hash_of(std::int64_t key) noexcept {
  char bytes[8];
  store_little_endian(static_cast<std::uint64_t>(key), bytes);
  return XXH3_64bits(bytes, sizeof bytes);
}

std::uint64_t hash_of(std::string_view key) noexcept { return XXH3_64bits(key.data(), key.size()); }

std::uint64_t place_hash_of(std::int64_t key) noexcept {
  return XXH3_64bits_withSeed(&key, sizeof key, process_seed());
}

std::uint64_t place_hash_of(std::string_view key) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), process_seed());
}

}  // namespace embertable::input
