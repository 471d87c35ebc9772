#include "jobs/number_token.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace embertable::jobs {
namespace {

std::string token(std::string_view text) {
  std::array<char, kNumberTokenBytes> out;
  return std::string(number_token(text, out).value_or("none"));
}

TEST(NumberToken, NumbersUpToTwoAreThemselves) {
  for (const std::string text : {"", "0", "1", "2", "-1", "-2071071", "0.5", "-1.25"})
    EXPECT_EQ(token(text), text);
}

TEST(NumberToken, OneNumberHasOneToken) {
  for (const std::string text : {"1", "01", "1.0", "1e0", "0001"}) EXPECT_EQ(token(text), "1");
  for (const std::string text : {"0", "-0", "0.0", "-0.0"}) EXPECT_EQ(token(text), "0");
  for (const std::string text : {"1500", "1500.0", "1.5e3"}) EXPECT_EQ(token(text), "~53");
}

TEST(NumberToken, GreaterOnesAreTheSquareOfTheirLogarithmRoundedDown) {
  // ln(3)^2 = 1.207, ln(4)^2 = 1.922, ln(5)^2 = 2.590, ln(1023)^2 = 48.03, ln(1024)^2 = 48.05,
  // ln(2071071)^2 = 211.5, ln(10^18)^2 = 1717.8, ln(2.5)^2 = 0.8396
  const char* const expected[][2] = {{"3", "~1"},
                                     {"4", "~1"},
                                     {"5", "~2"},
                                     {"1023", "~48"},
                                     {"1024", "~48"},
                                     {"2071071", "~211"},
                                     {"1000000000000000000", "~1717"},
                                     {"2.5", "~0"}};
  for (const auto& [text, bucket] : expected) EXPECT_EQ(token(text), bucket) << text;
}

TEST(NumberToken, WhatIsNoFiniteNumberHasNone) {
  for (const std::string text : {"x", "1x", " 1", "1 ", "nan", "inf", "-inf", "1e999", "-", "+1"})
    EXPECT_EQ(token(text), "none") << text;
}

}  // namespace
}  // namespace embertable::jobs
