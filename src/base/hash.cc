#include "base/hash.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/hash_levels.h"
#include "base/processor.h"
#include "base/random.h"

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

using Update = void (*)(void* state, const void* data, std::size_t bytes) noexcept;

void plain_update(void* state, const void* data, std::size_t bytes) noexcept {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

/// Returns the update of the widest usable level.
Update widest_update() noexcept {
  if (processor_has(Instructions::kAvx512f)) return avx512::xxh3_update;
  if (processor_has(Instructions::kAvx2)) return avx2::xxh3_update;
  return plain_update;
}

void update(XXH3_state_t* state, std::span<const std::byte> bytes) noexcept {
  static const Update widest = widest_update();
  widest(state, bytes.data(), bytes.size());
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
  embertable::update(&state_->xxh, bytes);
}

void Hasher::update_numbers(std::span<const float> numbers) noexcept {
  constexpr std::size_t kAtOnce = 1024;
  std::array<float, kAtOnce> copy;
  while (!numbers.empty()) {
    const std::size_t count = std::min(numbers.size(), kAtOnce);
    for (std::size_t i = 0; i < count; ++i)
      copy[i] = std::isnan(numbers[i]) ? std::numeric_limits<float>::quiet_NaN() : numbers[i];
    update(std::as_bytes(std::span(copy).first(count)));
    numbers = numbers.subspan(count);
  }
}

void Hasher::reset() noexcept { XXH3_128bits_reset(&state_->xxh); }

std::string Hasher::hex() const { return hex_of(XXH3_128bits_digest(&state_->xxh)); }

std::string hash_hex(std::span<const std::byte> bytes) {
  constexpr std::size_t kShort = 1024;
  if (bytes.size() <= kShort) return hex_of(XXH3_128bits(bytes.data(), bytes.size()));
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  update(&state, bytes);
  return hex_of(XXH3_128bits_digest(&state));
}

std::uint64_t process_seed() noexcept {
  static const std::uint64_t seed = [] {
    std::uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) == sizeof drawn) return drawn;
    // Without the system's randomness: the time and the place of the stack, which loading draws.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return mix_seeds(static_cast<std::uint64_t>(now), reinterpret_cast<std::uintptr_t>(&drawn));
  }();
  return seed;
}

}  // namespace embertable
