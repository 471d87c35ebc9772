#include "apps/jobs/spec/toml_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace embertable::jobs {
namespace {

toml::table parsed(const std::string& lines) { return TomlDocument(lines, "text", {}).root(); }

TEST(TomlText, SaysTheSameWhenItIsReadAgain) {
  std::mt19937 random(1);
  const auto one_of = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> pieces = {"a",  "_",  "9",      "-",    "'",   "\"", "\\",
                                           "\t", "\n", "\r",     ".",    "=",   " ",  "#",
                                           "[",  "]",  "\u00e9", "\x7f", "\x01"};
  const auto text = [&] {
    std::string some;
    for (std::size_t n = one_of(5); n > 0; --n) some += pieces[one_of(pieces.size())];
    return some;
  };
  for (int i = 0; i < 3000; ++i) {
    toml::table inner{{text(), text()}, {text(), 0.03}};
    inner.is_inline(i % 2 == 0);
    const toml::table table{
        {text(), text()},
        {text(), toml::array{text(), static_cast<std::int64_t>(random()), toml::array{}}},
        {text(), toml::table{{text(), inner}, {text(), true}}},
        {text(), toml::table{{text(), toml::table{{text(), inner}}}}},
        {text(), toml::table{}}};
    const std::string lines = toml_lines(table);
    ASSERT_EQ(parsed(lines), table) << lines;
  }
}

TEST(TomlText, HasTheFewestDigitsOfANumber) {
  for (const auto& [number, digits] : std::vector<std::pair<double, std::string>>{
           {0.03, "0.03"},
           {5, "5.0"},
           {-0.0, "-0.0"},
           {1e300, "1e+300"},
           {std::numeric_limits<double>::infinity(), "inf"},
           {-std::numeric_limits<double>::infinity(), "-inf"},
           {std::numeric_limits<double>::quiet_NaN(), "nan"}})
    EXPECT_EQ(toml_value(toml::value<double>(number)), digits);
  EXPECT_EQ(toml_value(toml::array{std::numeric_limits<double>::quiet_NaN(), 5}), "[ nan, 5 ]");
}

TEST(TomlText, HasQuotesWhereTheyAreNeeded) {
  EXPECT_EQ(toml_key("user_id"), "user_id");
  EXPECT_EQ(toml_key("user.id"), "'user.id'");
  EXPECT_EQ(toml_key("Driver's"), "\"Driver's\"");
  EXPECT_EQ(toml_key(""), "''");
  EXPECT_EQ(toml_value(toml::value<std::string>("a\tb\n")), "\"a\\tb\\n\"");
  EXPECT_EQ(toml_lines(parsed("a.b.'c d' = 1\n[x.y]\nz = {}\n[e]")),
            "[a.b]\n'c d' = 1\n\n[e]\n\n[x.y]\nz = {}\n");
}

}  // namespace
}  // namespace embertable::jobs
