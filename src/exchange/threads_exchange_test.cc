// Hosts of one process: the implementations that the contract is tried with, and what only they do.
#include "exchange/threads_exchange.h"

#include <gtest/gtest.h>

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

TEST(Stage, IsShownWithTheStepThatItBelongsTo) {
  EXPECT_EQ(to_string(Stage{"rows", 12}), "rows of step 12");
  EXPECT_EQ(to_string(Stage{"agreement"}), "agreement");
}

}  // namespace
}  // namespace embertable
