// Hosts of one process: the implementations that the contract is tried with, and what only they do.
#include "exchange/threads_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "exchange/local_exchange.h"
#include "testing/exchange/contract.h"
#include "testing/refusal.h"

namespace embertable {
namespace exchange_contract {

std::vector<Kind> kinds() {
  const auto local = [] {
    Hosts one;
    one.push_back(make_local_exchange());
    return one;
  };
  return {{"local", local},
          {"threads2", [] { return make_threads_exchange(2); }},
          {"threads5", [] { return make_threads_exchange(5); }}};
}

}  // namespace exchange_contract

namespace {

TEST(ThreadsExchange, HasAtLeastOneHost) {
  EXPECT_EQ(refusal<ValueError>([] { make_threads_exchange(0); }),
            "threads exchange: hosts must be >= 1, got 0");
}

TEST(ThreadsExchange, HostsThatFinishRoundsInOtherOrdersAreTold) {
  for (const std::int32_t hosts : {2, 3}) {
    std::vector<std::thread> threads;
    std::atomic<std::int32_t> told = 0;
    for (auto& each : make_threads_exchange(hosts))
      threads.emplace_back([&told, exchange = std::move(each)] {
        const std::vector<ByteSpan> send(exchange->hosts());
        std::vector<ByteSpan> received(send.size());
        std::array order = {Channel::kStep, Channel::kAhead};
        for (const Channel channel : order) exchange->start(channel, {"rows"}, send);
        if (exchange->host() == 0) std::ranges::reverse(order);
        try {
          for (const Channel channel : order) exchange->finish(channel, received);
          exchange->agree("");
        } catch (const GivenUp& error) {
          EXPECT_THAT(error.reason(), testing::HasSubstr("the same calls in the same order"));
          ++told;
        }
        exchange->agree("");
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told, hosts);
  }
}

TEST(Stage, IsShownWithTheStepThatItBelongsTo) {
  EXPECT_EQ(to_string(Stage{"rows", 12}), "rows of step 12");
  EXPECT_EQ(to_string(Stage{"agreement"}), "agreement");
}

}  // namespace
}  // namespace embertable
