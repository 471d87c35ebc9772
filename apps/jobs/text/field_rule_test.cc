#include "apps/jobs/text/field_rule.h"

#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

TEST(TimeOf, IsAnIntegerOrATimeOfTheCalendar) {
  EXPECT_EQ(time_of("-12")->number, -12);
  EXPECT_FALSE(time_of("20091231")->is_date);
  constexpr std::int64_t kSecond = 1'000'000, kDay = 86'400 * kSecond;
  constexpr std::int64_t kLast = 14'609 * kDay;  // 2009-12-31
  EXPECT_EQ(time_of("1970-01-01")->number, 0);
  EXPECT_EQ(time_of("1969-12-31")->number, -kDay);
  EXPECT_EQ(time_of("2009-12-31")->number, kLast);
  EXPECT_EQ(time_of("2009-12-31T23:59")->number, kLast + kDay - 60 * kSecond);
  EXPECT_EQ(time_of("2009-12-31 23:59:59")->number, kLast + kDay - kSecond);
  EXPECT_EQ(time_of("2009-12-31T23:59:59.25")->number, kLast + kDay - 750'000);
  EXPECT_EQ(time_of("2009-12-31T00:00:00.123456789")->number, kLast + 123'456);
  EXPECT_TRUE(time_of("2008-02-29")->is_date);
}

TEST(TimeOf, OfAZoneIsThatOfUtc) {
  const std::int64_t noon = time_of("2024-01-02 12:00")->number;
  for (const char* text :
       {"2024-01-02T12:00Z", "2024-01-02T12:00:00z", "2024-01-02T14:00+02",
        "2024-01-02T14:00:00+0200", "2024-01-02 06:30:00.000-05:30", "2024-01-03T01:00:00+13:00"})
    EXPECT_EQ(time_of(text)->number, noon) << text;
  EXPECT_EQ(time_of("2023-12-31T23:00:00-01:00")->number, time_of("2024-01-01")->number);
}

TEST(TimeOf, KnowsNoDayOrHourThatThereIsNot) {
  for (const char* text : {"2009-13-01",
                           "2009-00-01",
                           "2009-02-29",
                           "1900-02-29",
                           "2009-04-31",
                           "2009-01-00",
                           "2009-01-01 24:00:00",
                           "2009-01-01 23:60:00",
                           "2009-01-01 23:59:60",
                           "2009-1-1",
                           "yesterday",
                           "",
                           "2009-01-01T",
                           "2009-01-01T23",
                           "2009-01-01T23:5",
                           "2009-01-01T23:59:",
                           "2009-01-01T23:59:59.",
                           "2009-01-01T23:59.5",
                           "2009-01-01Z",
                           "2009-01-01T23:59+",
                           "2009-01-01T23:59+2",
                           "2009-01-01T23:59+24",
                           "2009-01-01T23:59+02:60",
                           "2009-01-01T23:59+02:0",
                           "2009-01-01T23:59Zx",
                           "2009-01-01x23:59",
                           "2009-01-01 23:59 ",
                           "10000-01-01"})
    EXPECT_FALSE(time_of(text)) << text;
}

}  // namespace
}  // namespace embertable::jobs
