#include "apps/jobs/text/field_rule.h"

#include <gtest/gtest.h>

namespace embertable::jobs {
namespace {

TEST(TimeOf, IsAnIntegerOrATimeOfTheCalendar) {
  EXPECT_EQ(time_of("-12")->number, -12);
  EXPECT_FALSE(time_of("20091231")->is_date);
  EXPECT_EQ(time_of("2009-12-31")->number, 20091231000000);
  EXPECT_EQ(time_of("2009-12-31T23:59")->number, 20091231235900);
  EXPECT_EQ(time_of("2009-12-31 23:59:59")->number, 20091231235959);
  EXPECT_TRUE(time_of("2008-02-29")->is_date);
}

TEST(TimeOf, KnowsNoDayOrHourThatThereIsNot) {
  for (const char* text : {"2009-13-01", "2009-00-01", "2009-02-29", "1900-02-29", "2009-04-31",
                           "2009-01-00", "2009-01-01 24:00:00", "2009-01-01 23:60:00",
                           "2009-01-01 23:59:60", "2009-1-1", "yesterday", ""})
    EXPECT_FALSE(time_of(text)) << text;
}

}  // namespace
}  // namespace embertable::jobs
