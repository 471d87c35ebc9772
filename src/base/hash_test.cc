#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash_levels.h"
#include "base/processor.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace embertable {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 131 % 251);
  return bytes;
}

// XXH3-128 with seed 0 as xxHash's own sanity check and command line give it.
TEST(Hasher, GivesThePublishedHashes) {
  EXPECT_EQ(Hasher().hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex(bytes_of("a")), "a96faf705af16834e6c632b61e964e1f");
}

TEST(Hasher, TakesEveryNaNForTheSameNumber) {
  const auto hash = [](const std::vector<float>& numbers) {
    Hasher hasher;
    hasher.update_numbers(numbers);
    return hasher.hex();
  };
  std::vector<float> numbers(3000, 1.5f);
  EXPECT_EQ(hash(numbers), hash_hex(std::as_bytes(std::span(numbers))));
  numbers.back() = std::bit_cast<float>(0x7fc00000u);
  const std::string with_nan = hash_hex(std::as_bytes(std::span(numbers)));
  for (const std::uint32_t bits :
       {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0xff812345u, 0x7f800001u}) {
    numbers.back() = std::bit_cast<float>(bits);
    EXPECT_EQ(hash(numbers), with_nan) << bits;
  }
  numbers.back() = -std::numeric_limits<float>::infinity();
  EXPECT_NE(hash(numbers), with_nan);
}

/// The digest by the vectors of every x86-64, or those of a level, as numbers.
using Update = void (*)(void* state, const void* data, std::size_t bytes) noexcept;
std::pair<std::uint64_t, std::uint64_t> digest(Update update, std::span<const std::byte> bytes) {
  const std::size_t cut = bytes.size() / 3;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  update(&state, bytes.data(), cut);
  update(&state, bytes.data() + cut, bytes.size() - cut);
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.high64, hash.low64};
}

TEST(Hasher, EveryLevelGivesTheSame) {
  std::vector<Update> levels;
  if (processor_has(Instructions::kAvx2)) levels.push_back(avx2::xxh3_update);
  if (processor_has(Instructions::kAvx512f)) levels.push_back(avx512::xxh3_update);
  for (const std::size_t size : {0, 1, 63, 240, 256, 257, 1023, 1025, 4097, 100000}) {
    const std::vector<std::byte> bytes = counting(size);
    const XXH128_hash_t whole = XXH3_128bits(bytes.data(), size);
    for (const Update update : levels)
      EXPECT_EQ(digest(update, bytes), std::pair(whole.high64, whole.low64)) << size;
  }
}

TEST(Hasher, PiecesDoNotShow) {
  for (const std::size_t size : {0, 1, 16, 17, 128, 129, 240, 241, 1024, 100000}) {
    const std::vector<std::byte> bytes = counting(size);
    const std::span<const std::byte> all(bytes);
    for (const std::size_t cut : {std::size_t{0}, size / 3, size}) {
      Hasher hasher;
      hasher.update(all.first(cut));
      hasher.update({});
      hasher.update(all.subspan(cut));
      EXPECT_EQ(hasher.hex(), hash_hex(all)) << size << " cut at " << cut;
    }
  }
}

TEST(Hasher, GoesOnAfterItsDigestWasRead) {
  Hasher hasher;
  hasher.update(bytes_of("ember"));
  EXPECT_EQ(hasher.hex(), hash_hex(bytes_of("ember")));
  Hasher moved = std::move(hasher);
  moved.update(bytes_of("table"));
  EXPECT_EQ(moved.hex(), hash_hex(bytes_of("embertable")));
}

TEST(Hasher, SeesEveryBit) {
  std::vector<std::byte> bytes = counting(300);
  const std::string hash = hash_hex(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 7) {
    bytes[i] ^= std::byte{1};
    EXPECT_NE(hash_hex(bytes), hash) << i;
    bytes[i] ^= std::byte{1};
  }
}

}  // namespace
}  // namespace embertable
