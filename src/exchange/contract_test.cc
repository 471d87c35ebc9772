// What must hold for every exchange.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <numeric>
#include <string>
#include <thread>

#include "embertable/errors.h"
#include "exchange/local_exchange.h"
#include "exchange/threads_exchange.h"

namespace embertable {
namespace {

using Hosts = std::vector<std::unique_ptr<Exchange>>;
using std::chrono::milliseconds;

Hosts local(milliseconds) {
  Hosts one;
  one.push_back(make_local_exchange());
  return one;
}

struct Kind {
  std::string name;
  std::function<Hosts(milliseconds)> make;
};

class ExchangeContract : public testing::TestWithParam<Kind> {
 protected:
  /// Runs body once per host, each on a thread of its own, once all threads run: a deadline then
  /// waits for hosts, not for threads to begin.
  void on_all_hosts(Hosts& hosts, const std::function<void(Exchange&)>& body) {
    std::latch all_run(static_cast<std::ptrdiff_t>(hosts.size()));
    std::vector<std::thread> threads;
    for (auto& host : hosts) {
      threads.emplace_back([&] {
        all_run.arrive_and_wait();
        body(*host);
      });
    }
    for (auto& thread : threads) thread.join();
  }
};

std::vector<std::int32_t> numbers(ByteSpan bytes) {
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST_P(ExchangeContract, EveryHostGetsWhatTheOthersSentIt) {
  Hosts hosts = GetParam().make(milliseconds(20000));
  on_all_hosts(hosts, [&](Exchange& exchange) {
    const std::int32_t n = exchange.hosts();
    for (std::int32_t round = 0; round < 50; ++round) {
      // Host a sends host b the numbers a, b, round, repeated a + b + round times; often nothing at
      // all.
      std::vector<std::vector<std::int32_t>> messages(n);
      std::vector<ByteSpan> send;
      for (std::int32_t to = 0; to < n; ++to) {
        auto& message = messages[to];
        for (std::int32_t i = 0; i < (exchange.host() + to + round) % 7; ++i)
          message.insert(message.end(), {exchange.host(), to, round});
        send.push_back(std::as_bytes(std::span(message)));
      }
      std::vector<ByteSpan> received(n);
      exchange.all_to_all(send, received);
      for (std::int32_t from = 0; from < n; ++from) {
        std::vector<std::int32_t> expected;
        for (std::int32_t i = 0; i < (exchange.host() + from + round) % 7; ++i)
          expected.insert(expected.end(), {from, exchange.host(), round});
        EXPECT_EQ(numbers(received[from]), expected);
      }
    }
  });
}

TEST_P(ExchangeContract, AgreeReturnsWhenNobodyErrs) {
  Hosts hosts = GetParam().make(milliseconds(20000));
  on_all_hosts(hosts, [](Exchange& exchange) {
    for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(exchange.agree(""));
  });
}

TEST_P(ExchangeContract, AnErrorOfOneIsThrownByAllAndTheNextCallWorks) {
  Hosts hosts = GetParam().make(milliseconds(20000));
  const std::int32_t at_fault = static_cast<std::int32_t>(hosts.size()) - 1;
  on_all_hosts(hosts, [&](Exchange& exchange) {
    try {
      exchange.agree(exchange.host() == at_fault ? "id 9 is too large" : "");
      ADD_FAILURE() << "host " << exchange.host() << " did not throw";
    } catch (const StateError& error) {
      EXPECT_EQ(std::string(error.what()),
                "host " + std::to_string(at_fault) + ": id 9 is too large");
    }
    EXPECT_NO_THROW(exchange.agree(""));
  });
}

TEST_P(ExchangeContract, AHostThatGivesUpIsNamedToTheOthers) {
  Hosts hosts = GetParam().make(milliseconds(20000));
  on_all_hosts(hosts, [&](Exchange& exchange) {
    if (exchange.host() == 0) return exchange.abort("out of memory");
    try {
      exchange.agree("");
      ADD_FAILURE() << "did not throw";
    } catch (const StateError& error) {
      EXPECT_NE(std::string(error.what()).find("host 0 gave up: out of memory"), std::string::npos);
    }
  });
  EXPECT_THROW(hosts[0]->agree(""), StateError);
}

TEST_P(ExchangeContract, AnAbsentHostIsNamedAfterTheDeadline) {
  if (GetParam().make(milliseconds(30)).size() == 1) return;  // alone, nobody can be absent
  std::vector<std::string> told;
  std::vector<std::string> expected;
  // A busy machine may keep more hosts away than the one: then the deadline was too short for it.
  for (int wait = 30; wait < 10000 && (told.empty() || told != expected); wait *= 4) {
    Hosts hosts = GetParam().make(milliseconds(wait));
    expected.assign(hosts.size(), "exchange: waited " + std::to_string(wait) + " ms for host 1");
    told = expected;
    on_all_hosts(hosts, [&](Exchange& exchange) {
      if (exchange.host() == 1) return;
      try {
        exchange.agree("");
        ADD_FAILURE() << "did not throw";
      } catch (const StateError& error) {
        told[exchange.host()] = error.what();
      }
    });
  }
  EXPECT_EQ(told, expected);
}

/// All are there in time; then one has much to read, and the others must not take it away.
TEST_P(ExchangeContract, ReadingMayTakeLongerThanTheDeadline) {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  const std::vector<std::byte> much(kBytes, std::byte{7});
  bool in_time = false;  // threads may start too late on a busy machine
  for (int attempt = 0; attempt < 20 && !in_time; ++attempt) {
    Hosts hosts = GetParam().make(milliseconds(20));
    std::atomic<int> refused = 0;
    on_all_hosts(hosts, [&](Exchange& exchange) {
      const auto last = static_cast<std::size_t>(exchange.hosts()) - 1;
      std::vector<ByteSpan> send(last + 1), received(last + 1);
      if (exchange.host() == static_cast<std::int32_t>(last)) send[0] = much;
      try {
        exchange.all_to_all(send, received);
        EXPECT_EQ(received[last].size(), exchange.host() == 0 ? kBytes : 0);
        for (const std::byte each : received[last].last(exchange.host() == 0 ? 1 : 0))
          EXPECT_EQ(each, std::byte{7});
      } catch (const StateError&) {
        ++refused;
      }
    });
    in_time = refused == 0;
  }
  EXPECT_TRUE(in_time);
}

INSTANTIATE_TEST_SUITE_P(
    AllKinds, ExchangeContract,
    testing::Values(
        Kind{"local", local},
        Kind{"threads2", [](milliseconds wait) { return make_threads_exchange(2, wait); }},
        Kind{"threads5", [](milliseconds wait) { return make_threads_exchange(5, wait); }}),
    [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace embertable
