#include "apps/convert/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace embertable::jobs {
namespace {

TEST(Printable, KeepsWhatIsReadable) {
  for (const char* text : {"", "The Hobbit", "caf\xc3\xa9 \\x", "\xe6\x9c\xac", "\xf0\x9f\x93\x96"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b]0;title\x07\x1b[2J"), "\\x1b]0;title\\x07\\x1b[2J");
  EXPECT_EQ(printable("a\rb\x7f"),
            "a\\x0d"
            "b\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m"),
            "\\u009b1m");
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "evil"),
            "\\u202eevil");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff"
                      "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(printable("\xc0\x9b\xed\xa0\x80\xf4\x90\x80\x80"),
            "\\xc0\\x9b\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
}

TEST(Printable, KeepsLinesOfAMessage) {
  EXPECT_EQ(printable("a\n\tb\x1b", Blanks::kKeep), "a\n\tb\\x1b");
  EXPECT_EQ(printable("a\n\tb"),
            "a\\x0a\\x09"
            "b");
}

}  // namespace
}  // namespace embertable::jobs
