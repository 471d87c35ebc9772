#include "apps/jobs/text/number_token.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

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

TEST(LimitToken, SaysBetweenWhichLimitsANumberIs) {
  const std::vector<double> limits = {-1, 0, 2.5};
  const char* const expected[][2] = {{"-1.5", "<-1"},  {"-1", "-1..0"},  {"-0.1", "-1..0"},
                                     {"0", "0..2.5"},  {"-0", "0..2.5"}, {"2", "0..2.5"},
                                     {"2.5", ">=2.5"}, {"1e9", ">=2.5"}, {"", ""}};
  for (const auto& [text, token] : expected) EXPECT_EQ(limit_token(text, limits), token) << text;
  for (const char* text : {"x", "nan", "inf", "1e999", " 1"})
    EXPECT_FALSE(limit_token(text, limits)) << text;
  EXPECT_EQ(limit_token("7", std::vector<double>{7}), ">=7");
}

TEST(NumberCode, StandsForTheToken) {
  std::vector<std::string> texts = {"",    "-",         "-x",       "-17",       "-16",      "-1",
                                    "-0",  "-00",       "-001",     "--1",       "+1",       "x",
                                    "1x",  "12345678x", "1:",       "/1",        "12 4",     "1.0",
                                    "007", "00000001",  "99999999", "100000000", "123456789"};
  for (int v = 0; v < 3000; ++v) texts.push_back(std::to_string(v));
  for (std::uint64_t v = 1; v < 100'000'000; v = v * 13 / 10 + 1)
    texts.push_back(std::to_string(v));
  int coded = 0;
  for (const std::string& text : texts) {
    const std::string padded = text + "7777777777777777";  // what follows is no part of it
    const std::int32_t code = NumberCodes().of(std::string_view(padded).substr(0, text.size()));
    if (code < 0) continue;
    ++coded;
    ASSERT_LT(code, kNumberCodes);
    std::array<char, kNumberTokenBytes> out;
    EXPECT_EQ(code_token(code, out), token(text)) << text;
  }
  EXPECT_GT(coded, 3050);
  for (const char* text : {"x1234567", "-xyzabcd", "1.000000", "123456789"})
    EXPECT_EQ(NumberCodes().of(text), -1) << text;
}

TEST(NumberCode, OneTokenHasOneCode) {
  std::array<char, kNumberTokenBytes> out;
  std::set<std::string> tokens;
  for (std::int32_t code = 0; code < kNumberCodes; ++code) tokens.emplace(code_token(code, out));
  EXPECT_EQ(tokens.size(), static_cast<std::size_t>(kNumberCodes));
}

}  // namespace
}  // namespace embertable::jobs
