#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace embertable {
namespace {

std::span<const std::byte> bytes_of(const std::string& text, std::size_t first, std::size_t count) {
  return std::as_bytes(std::span(text.data(), text.size())).subspan(first, count);
}

// RFC 3720, B.4, and the check value that catalogues of CRCs give.
TEST(Crc32c, GivesThePublishedSums) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(falling), 0x113fdb5cu);
}

TEST(Crc32c, TableAndInstructionAgreeAtEveryStartAndLength) {
  std::string text;
  for (unsigned i = 0; i < 64; ++i) text += static_cast<char>(i * i * 37 + 11);
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t count = 0; first + count <= text.size(); ++count) {
      const auto bytes = bytes_of(text, first, count);
      EXPECT_EQ(extend_crc32c(7, bytes), extend_crc32c_by_table(7, bytes)) << first << " " << count;
    }
  }
}

TEST(Crc32c, PartsAddUpToTheWhole) {
  const std::string text = "hello, world: a line that is cut anywhere";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::uint32_t sum = extend_crc32c(0, bytes_of(text, 0, cut));
    EXPECT_EQ(extend_crc32c(sum, bytes_of(text, cut, text.size() - cut)), crc32c(text));
  }
}

TEST(ShardedCases, Case87_SumsAreMasked) {
  const std::string half("\0\0\0\x3f", 4);
  EXPECT_EQ(masked_crc32c(crc32c("123456789")), 0xc78ab0e5u);
  EXPECT_EQ(masked_crc32c(crc32c("")), 0xa282ead8u);
  EXPECT_EQ(masked_crc32c(crc32c(std::string(4, '\0'))), 0x3a117ba6u);
  EXPECT_EQ(crc32c(half), 0x26973e52u);
  EXPECT_EQ(masked_crc32c(crc32c(half)), 0x1f273806u);
}

}  // namespace
}  // namespace embertable
