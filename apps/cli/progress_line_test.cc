#include "apps/cli/progress_line.h"

#include <gtest/gtest.h>

namespace embertable::tools {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(ProgressLine, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(progress_text("verify", 512 * kMiB, 2048 * kMiB, 2, false),
            "verify  512 MiB of 2.0 GiB  256 MiB/s  0:06 left");
  EXPECT_EQ(progress_text("verify", 512 * kMiB, 2048 * kMiB, 2, true),
            "verify  [======                  ] 512 MiB of 2.0 GiB  256 MiB/s  0:06 left");
}

TEST(ProgressLine, WithoutAnExpectedSizeThereIsNoTimeLeft) {
  EXPECT_EQ(progress_text("save", 512 * kMiB, 0, 4, true), "save  512 MiB  128 MiB/s");
}

TEST(ProgressLine, MoreThanExpectedIsAll) {
  EXPECT_EQ(progress_text("save", 3 * kMiB, 2 * kMiB, 1, false),
            "save  3.0 MiB of 3.0 MiB  3.0 MiB/s  0:00 left");
}

TEST(ProgressLine, MinutesGoBeyondAnHour) {
  EXPECT_EQ(minutes(65.4), "1:05");
  EXPECT_EQ(minutes(7260), "121:00");
}

TEST(ProgressLine, TheBarIsFullAtTheEnd) {
  EXPECT_EQ(progress_bar(0), std::string(24, ' '));
  EXPECT_EQ(progress_bar(0.5), std::string(12, '=') + std::string(12, ' '));
  EXPECT_EQ(progress_bar(1.1), std::string(24, '='));
}

}  // namespace
}  // namespace embertable::tools
