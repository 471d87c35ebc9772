#include "checkpoint/checksum.h"

#ifndef XXH_STATIC_LINKING_ONLY
#define XXH_STATIC_LINKING_ONLY  // for the state by value
#endif
#include <xxhash.h>

namespace embertable::checkpoint {
namespace {

std::string to_hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

std::string to_hex(XXH128_hash_t value) { return to_hex(value.high64) + to_hex(value.low64); }

}  // namespace

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum(Bits bits) : bits_(bits), state_(std::make_unique<State>()) { reset(); }

Checksum::~Checksum() = default;

void Checksum::reset() noexcept {
  if (bits_ == Bits::k64) {
    XXH3_64bits_reset(&state_->xxh3);
  } else {
    XXH3_128bits_reset(&state_->xxh3);
  }
}

void Checksum::update(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;  // a null pointer is no input
  if (bits_ == Bits::k64) {
    XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
  } else {
    XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
  }
}

std::string Checksum::hex() const {
  return bits_ == Bits::k64 ? to_hex(XXH3_64bits_digest(&state_->xxh3))
                            : to_hex(XXH3_128bits_digest(&state_->xxh3));
}

std::string xxh64_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_64bits(bytes.data(), bytes.size()));
}

std::string xxh128_hex(std::span<const std::byte> bytes) {
  return to_hex(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace embertable::checkpoint
