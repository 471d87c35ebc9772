#include "exchange/all_gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "embertable/errors.h"
#include "exchange/threads_exchange.h"

namespace embertable {
namespace {

using testing::Each;
using testing::Pair;

TEST(FirstDifference, IsALineOfEachText) {
  EXPECT_THAT(first_difference("a = 1\nb = 2\n", "a = 1\nb = 20\n"), Pair("b = 2", "b = 20"));
  EXPECT_THAT(first_difference("a = 1\n", "b = 1\nb = 2\n"), Pair("a = 1", "nothing"));
}

TEST(FirstDifference, OfATextThatHasEndedIsNothing) {
  EXPECT_THAT(first_difference("a\nb\n", "a\n"), Pair("b", "nothing"));
  EXPECT_THAT(first_difference("a = 1\nc = 1\n", "a = 1\nb = 2\nc = 1\n"),
              Pair("nothing", "b = 2"));
  EXPECT_THAT(first_difference("b = 1\na = 1\n", "a = 1\nb = 1\n"), Pair("b = 1", "a = 1"));
  EXPECT_THAT(first_difference("", "a"), Pair("nothing", "a"));
  EXPECT_THAT(first_difference("", ""), Pair("nothing", "nothing"));
}

/// Returns the error of each host whose lines these are, "" for none.
std::vector<std::string> errors_of(const std::vector<std::string>& lines) {
  const auto hosts = make_threads_exchange(static_cast<std::int32_t>(lines.size()));
  std::vector<std::string> errors(lines.size());
  std::vector<std::thread> threads;
  for (std::size_t host = 0; host < lines.size(); ++host) {
    threads.emplace_back([&, host] {
      try {
        require_equal(*hosts[host], "job", lines[host]);
      } catch (const ValueError& error) {
        errors[host] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(RequireEqual, NamesTheFirstHostThatDiffersOnAll) {
  EXPECT_THAT(errors_of({"a\nb\n", "a\nb\n", "a\nb\n"}), Each(""));
  EXPECT_THAT(errors_of({"a\nb\n", "a\nb\n", "a\nc\n"}),
              Each("hosts must have one job: host 2 has 'c', host 0 has 'b'"));
  EXPECT_THAT(errors_of({"a\nb\n", "a\n", "c\n"}),
              Each("hosts must have one job: host 1 has 'nothing', host 0 has 'b'"));
}

}  // namespace
}  // namespace embertable
