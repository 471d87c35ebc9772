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

TEST(Utf8, CharactersOfEveryLengthAreTaken) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8(std::string_view("a\0\x7f", 3)));
  for (const std::string_view text :
       {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(utf8_character(text), text.size());
    EXPECT_TRUE(is_utf8("a" + std::string(text) + "b"));
  }
}

TEST(Utf8, WhatIsNotWellFormedIsRefused) {
  for (const std::string_view text : {
           "\x80", "\xbf",                                              // a continuation alone
           "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",  // overlong
           "\xed\xa0\x80", "\xed\xbf\xbf",                              // surrogates
           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",              // beyond U+10FFFF
           "\xc2", "\xe1\x80", "\xf1\x80\x80",                          // truncated
           "\xc2"
           "a",
           "\xe1\x80"
           "a",
           "\xf1\x80\x80"
           "a",
           "\xe1"
           "a\x80"  // interrupted
       }) {
    EXPECT_EQ(utf8_character(text), 0u);
    EXPECT_FALSE(is_utf8("a" + std::string(text)));
  }
}

}  // namespace
}  // namespace embertable
