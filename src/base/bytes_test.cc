#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace embertable {
namespace {

TEST(LittleEndian, HasTheLowestByteFirst) {
  std::string bytes = "x";
  append_little_endian(std::uint32_t{0x04030201}, bytes);
  append_little_endian(std::uint16_t{0xfffe}, bytes);
  EXPECT_EQ(bytes, "x\x01\x02\x03\x04\xfe\xff");
  EXPECT_EQ(load_little_endian<std::uint32_t>(&bytes[1]), 0x04030201u);
  EXPECT_EQ(load_little_endian<std::uint16_t>(&bytes[5]), 0xfffeu);
}

TEST(ByteCursor, TakesWhatIsThereAndNoMore) {
  const std::string bytes = "abc\x05\x01";
  ByteCursor<const char> cursor(bytes);
  EXPECT_EQ(cursor.text(3), "abc");
  EXPECT_EQ(cursor.left(), 2u);
  EXPECT_TRUE(cursor.holds(2));
  EXPECT_FALSE(cursor.holds(3));
  EXPECT_FALSE(cursor.holds(~std::uint64_t{0}));
  EXPECT_EQ(cursor.number<std::uint16_t>(), 0x0105u);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(cursor.text(0), "");
}

TEST(ByteCursor, GivesPlacesToWriteTo) {
  std::array<std::byte, 3> bytes{};
  ByteCursor<std::byte> cursor(bytes);
  cursor.take(2);
  *cursor.take(1) = std::byte{7};
  EXPECT_EQ(bytes[2], std::byte{7});
  EXPECT_DEATH(cursor.take(1), "holds");
}

TEST(ByteCursor, OfNothingIsAtItsEnd) {
  ByteCursor<const std::byte> cursor({});
  EXPECT_TRUE(cursor.at_end());
  cursor.take(0);
  EXPECT_FALSE(cursor.holds(1));
}

}  // namespace
}  // namespace embertable
