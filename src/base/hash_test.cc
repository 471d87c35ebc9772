#include "base/hash.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
