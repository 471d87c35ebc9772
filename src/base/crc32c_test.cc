#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace embertable {
namespace {

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

}  // namespace
}  // namespace embertable
