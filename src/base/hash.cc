#include "base/hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace embertable {
namespace {

std::string hex_of(XXH128_hash_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> bytes) noexcept {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

void Hasher::reset() noexcept { XXH3_128bits_reset(&state_->xxh); }

std::string Hasher::hex() const { return hex_of(XXH3_128bits_digest(&state_->xxh)); }

std::string hash_hex(std::span<const std::byte> bytes) {
  return hex_of(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace embertable
