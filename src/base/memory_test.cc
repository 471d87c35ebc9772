#include "base/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"

namespace embertable {
namespace {

constexpr std::int64_t kHugePage = 2 << 20;

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

bool smaps_can_be_read() {
  const Mapping mapping(64 << 10);
  std::memset(mapping.data(), 1, 64 << 10);
  return mapping.use().resident_bytes > 0;
}

TEST(Mapping, IsZeroAlignedAndWritableToTheLastByte) {
  for (const std::int64_t bytes : {1L, 4095L, 4096L, 4097L, 2L << 20, (2L << 20) + 1, 50L << 20}) {
    const Mapping mapping(bytes);
    EXPECT_EQ(address(mapping.data()) % kHugePage, 0u);
    ASSERT_GE(mapping.bytes(), bytes);
    const auto end = mapping.data() + mapping.bytes();
    EXPECT_TRUE(std::all_of(end - 4096, end, [](std::byte b) { return b == std::byte{0}; }));
    std::fill(end - 4096, end, std::byte{1});
  }
}

TEST(Mapping, RoundsToHugePagesWhereThatAddsAtMostAnEighth) {
  EXPECT_EQ(Mapping(1).bytes(), 4096);
  EXPECT_EQ(Mapping(1 << 20).bytes(), 1 << 20);
  EXPECT_EQ(Mapping(kHugePage - 4096).bytes(), kHugePage);
  EXPECT_EQ(Mapping(kHugePage + 1).bytes(), kHugePage + 4096);
  EXPECT_EQ(Mapping(16 * kHugePage + 1).bytes(), 17 * kHugePage);
}

TEST(Mapping, OfNothingIsEmpty) {
  const Mapping mapping(0);
  EXPECT_EQ(mapping.data(), nullptr);
  EXPECT_EQ(mapping.bytes(), 0);
  EXPECT_EQ(mapping.use().bytes, 0);
  EXPECT_EQ(mapping.use().resident_bytes, 0);
}

TEST(Mapping, Moves) {
  Mapping a(4096);
  std::byte* const data = a.data();
  Mapping b(std::move(a));
  EXPECT_EQ(b.data(), data);
  Mapping c(8192);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.bytes(), 4096);
}

TEST(Mapping, SaysHowMuchIsResidentOfItselfAlone) {
  if (!smaps_can_be_read()) GTEST_SKIP() << "needs /proc/self/smaps";
  const Mapping before(64 << 10);
  const Mapping mapping(64 << 10);
  const Mapping after(64 << 10);
  std::memset(before.data(), 1, 64 << 10);
  std::memset(after.data(), 1, 64 << 10);
  EXPECT_EQ(mapping.use().bytes, 64 << 10);
  EXPECT_EQ(mapping.use().resident_bytes, 0);
  std::memset(mapping.data(), 1, 12 << 10);
  EXPECT_EQ(mapping.use().resident_bytes, 12 << 10);
  EXPECT_EQ(mapping.use().huge_bytes, 0);
}

TEST(Mapping, HugePagesAreAtMostWhatIsResident) {
  const Mapping mapping(4 * kHugePage);
  std::memset(mapping.data(), 1, mapping.bytes());
  const MemoryUse use = mapping.use();
  EXPECT_LE(use.huge_bytes, use.resident_bytes);
  EXPECT_LE(use.resident_bytes, use.bytes);
}

TEST(Mapping, TooLargeIsAnIoErrorNamingTheSize) {
  for (const std::int64_t bytes : {std::int64_t{1} << 46, std::int64_t{1} << 62}) {
    try {
      const Mapping mapping(bytes);
      FAIL() << "mapped " << mapping.bytes();
    } catch (const IoError& error) {
      EXPECT_EQ(std::string(error.what()), "memory: mapping " + std::to_string(bytes) +
                                               " bytes failed: Cannot allocate memory");
    }
  }
}

TEST(MappingDeathTest, ItsNeighboursMayNotBeTouched) {
  const Mapping mapping(4096);
  volatile std::byte* const data = mapping.data();
  EXPECT_DEATH(data[4096] = std::byte{1}, "");
  EXPECT_DEATH(data[-1] = std::byte{1}, "");
}

TEST(Arena, PiecesAreAlignedAndDoNotOverlap) {
  Arena arena;
  std::uintptr_t end = 0;
  for (const std::int64_t count : {1, 15, 16, 17, 0, 1024}) {
    const auto piece = arena.take<float>(count);
    EXPECT_EQ(piece.size(), static_cast<std::size_t>(count));
    EXPECT_EQ(address(piece.data()) % 64, 0u);
    EXPECT_GE(address(piece.data()), end);
    end = address(piece.data() + piece.size());
  }
}

TEST(Arena, PiecesOfWholePagesStartAtOtherCacheSets) {
  Arena arena;
  std::uintptr_t last = address(arena.take<float>(1 << 20).data());
  for (int i = 0; i < 20; ++i) {
    const std::uintptr_t next = address(arena.take<float>(1024 * (i % 3)).data());
    EXPECT_NE(next % 4096, last % 4096);
    last = next;
  }
}

/// What a step may ask for.
std::vector<void*> request(Arena& arena) {
  std::vector<void*> starts;
  for (const std::int64_t count : {3000, 0, 1, 70000, 4096, 16, 500000}) {
    const auto piece = arena.take<std::int64_t>(count);
    std::fill(piece.begin(), piece.end(), count);
    starts.push_back(piece.data());
  }
  return starts;
}

TEST(Arena, GivesASteadyCallerTheSameMemory) {
  Arena arena;
  request(arena);
  arena.reset();
  const std::int64_t bytes = arena.bytes();
  const std::vector<void*> starts = request(arena);
  for (int step = 0; step < 3; ++step) {
    arena.reset();
    EXPECT_EQ(request(arena), starts);
    EXPECT_EQ(arena.bytes(), bytes);
  }
}

TEST(Arena, EveryPieceStaysValidWhileItGrows) {
  Arena arena;
  std::vector<std::span<std::int32_t>> pieces;
  for (std::int32_t i = 0; i < 200; ++i) {
    pieces.push_back(arena.take<std::int32_t>(1 << (i % 16)));
    std::ranges::fill(pieces.back(), i);
  }
  for (std::int32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(std::ranges::count(pieces[i], i), 1 << (i % 16));
  }
}

TEST(Arena, GrowsBySharesOfItselfSoThatMappingsAreFew) {
  Arena arena;
  int mappings = 0;
  for (std::int64_t before = 0, i = 0; i < 1000; ++i, before = arena.bytes()) {
    (void)arena.take<float>(1 << 14);
    mappings += arena.bytes() > before ? 1 : 0;
  }
  EXPECT_GE(arena.bytes(), 1000LL << 16);
  EXPECT_LE(arena.bytes(), 2 * (1000LL << 16));
  EXPECT_LE(mappings, 16);
}

TEST(Arena, ALittleMoreThanBeforeTakesLittleMoreMemory) {
  constexpr std::int64_t kPieces = 100, kMore = 4, kPiece = 1 << 20;
  Arena arena;
  const auto take = [&](std::int64_t pieces) {
    for (std::int64_t i = 0; i < pieces; ++i) (void)arena.take<std::byte>(kPiece);
  };
  take(kPieces);
  arena.reset();
  take(kPieces);
  const std::int64_t steady = arena.bytes();
  EXPECT_LE(steady, kPieces * kPiece * 11 / 10);
  take(kMore);
  EXPECT_LE(arena.bytes(), steady * 5 / 4);
  arena.reset();
  take(kPieces + kMore);
  EXPECT_LE(arena.bytes(), steady * 11 / 10);
}

TEST(Arena, WorksOnAfterAMove) {
  Arena arena;
  const auto piece = arena.take<float>(4);
  Arena moved(std::move(arena));
  piece[3] = 1;
  EXPECT_NE(moved.take<float>(4).data(), piece.data());
  arena = Arena();
  EXPECT_EQ(arena.bytes(), 0);
  EXPECT_EQ(arena.take<float>(4).size(), 4u);
}

TEST(Arena, UseSumsItsMappings) {
  Arena arena;
  EXPECT_EQ(arena.use().bytes, 0);
  request(arena);
  const MemoryUse use = arena.use();
  EXPECT_EQ(use.bytes, arena.bytes());
  EXPECT_LE(use.resident_bytes, use.bytes);
}

}  // namespace
}  // namespace embertable
