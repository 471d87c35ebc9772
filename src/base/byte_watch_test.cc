#include "base/byte_watch.h"

#include <gtest/gtest.h>

#include <thread>

namespace embertable {
namespace {

TEST(ByteWatch, TheInnermostWatchOfAThreadSees) {
  std::int64_t outer = 0, inner = 0, expected = 0;
  ByteWatch::done(100);  // nobody watches
  {
    const ByteWatch first([&](std::int64_t more, std::int64_t done) {
      expected += more;
      outer += done;
    });
    ByteWatch::expect(50);
    ByteWatch::done(1);
    {
      const ByteWatch second([&](std::int64_t, std::int64_t done) { inner += done; });
      ByteWatch::done(2);
    }
    ByteWatch::done(4);
    std::thread([] { ByteWatch::done(8); }).join();
  }
  ByteWatch::done(16);
  EXPECT_EQ(expected, 50);
  EXPECT_EQ(outer, 5);
  EXPECT_EQ(inner, 2);
}

}  // namespace
}  // namespace embertable
