#include "apps/jobs/text/broken_record.h"

#include <gtest/gtest.h>

#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

TEST(SkipBad, IsANumberOrAShare) {
  EXPECT_EQ(SkipBad::parse("12").most(), 12);
  EXPECT_EQ(SkipBad::parse("12").share(), 0);
  EXPECT_EQ(SkipBad::parse("1.5%").share(), 0.015);
  EXPECT_EQ(SkipBad::parse("12").text(), "12");
  for (const char* text : {"1.5%", "1%", "7%", "0.07%", "29%", "57%", "100%"})
    EXPECT_EQ(SkipBad::parse(text).text(), text);
  for (const char* text : {"", "-1", "0%", "101%", "1 %", "x", "%", "1e2", "1e-323%"}) {
    EXPECT_EQ(refusal<ValueError>("", [&] { SkipBad::parse(text); }),
              "must be a number of records from 0, or a share of them as 1%, got '" +
                  std::string(text) + "'");
  }
}

TEST(LeftOut, SumsUpByTheRuleThatIsBroken) {
  LeftOutCounter counter(9);
  for (const char* line : {"3", "5", "9"}) {
    try {
      throw BrokenRecord(std::string("a.csv:") + line + ":2",
                         *line == '5' ? "'x' must be a number" : "'y' must be a number", "'?'");
    } catch (const BrokenRecord& error) {
      EXPECT_EQ(error.what(), error.position() + ": " + error.rule() + ", got '?'");
      counter.count();
    }
  }
  LeftOut all = counter.so_far();
  all += counter.so_far();
  ASSERT_EQ(all.reasons.size(), 2u);
  EXPECT_EQ(all.reasons[0].rule, "'y' must be a number");
  EXPECT_EQ(all.reasons[0].count, 4);
  EXPECT_EQ(all.reasons[0].first, "a.csv:3:2");
  EXPECT_EQ(all.reasons[1].first, "a.csv:5:2");
  EXPECT_EQ(all.total(), 6);
}

TEST(LeftOut, OneTooManySaysHowManyThereWereBefore) {
  const auto count = [](LeftOutCounter& counter, const char* line) {
    try {
      throw BrokenRecord(line, "'x' must be a number", "'?'");
    } catch (const BrokenRecord&) {
      counter.count();
    }
  };
  LeftOutCounter none(0), some(2);
  EXPECT_EQ(refusal<BrokenRecord>("", [&] { count(none, "a.csv:3:1"); }),
            "a.csv:3:1: 'x' must be a number, got '?'");
  count(some, "a.csv:3:1");
  count(some, "a.csv:4:1");
  EXPECT_EQ(refusal<BrokenRecord>("", [&] { count(some, "a.csv:8:1"); }),
            "a.csv:8:1: 'x' must be a number, got '?'; 2 broken before it are left out, and no "
            "more may be");
}

TEST(LeftOut, AShareIsOfAllThatWasRead) {
  LeftOut left_out{.reasons = {{"'x' must be a number", 3, "a.csv:7:1"}}, .read = 200};
  check_share(SkipBad::parse("1.5%"), left_out);
  check_share(SkipBad(0), left_out);
  EXPECT_EQ(refusal<ValueError>("", [&] { check_share(SkipBad::parse("1%"), left_out); }),
            "a.csv:7:1: 'x' must be a number; of 200 records 3 are broken, more than 1%");
}

}  // namespace
}  // namespace embertable::jobs
