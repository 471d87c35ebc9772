// What must hold for every exchange.
#include "testing/exchange/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "testing/refusal.h"

namespace embertable {
namespace {

using exchange_contract::Hosts;
using exchange_contract::Kind;

using Bytes = std::vector<std::byte>;

/// Returns a message that tells sender, receiver and round apart, byte by byte.
Bytes message(std::int32_t from, std::int32_t to, std::int64_t round, std::size_t bytes) {
  Bytes all(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(from * 1009 + to * 9176 + round * 31 + 7);
  for (std::byte& each : all) {
    state = state * 1664525 + 1013904223;
    each = std::byte(state >> 24);
  }
  return all;
}

using Sizes = std::function<std::size_t(std::int32_t from, std::int32_t to)>;

/// The messages of one host in one round.
class Sent {
 public:
  Sent(const Exchange& exchange, std::int64_t round, Sizes sizes)
      : host_(exchange.host()), round_(round), sizes_(std::move(sizes)) {
    for (std::int32_t to = 0; to < exchange.hosts(); ++to)
      messages_.push_back(message(host_, to, round, sizes_(host_, to)));
    spans_.assign(messages_.begin(), messages_.end());
  }
  std::span<const ByteSpan> spans() const { return spans_; }

  /// Expects what the others send in the same round, aligned.
  void expect(std::span<const ByteSpan> received) const {
    for (std::int32_t from = 0; std::cmp_less(from, received.size()); ++from) {
      const ByteSpan found = received[from];
      const Bytes expected = message(from, host_, round_, sizes_(from, host_));
      ASSERT_EQ(found.size(), expected.size()) << "host " << host_ << " from " << from;
      EXPECT_TRUE(std::ranges::equal(found, expected)) << "host " << host_ << " from " << from;
      if (from != host_ && !found.empty()) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.data()) % 64, 0);
      }
    }
    EXPECT_EQ(received[host_].data(), spans_[host_].data()) << "an own message was copied";
  }

 private:
  std::int32_t host_;
  std::int64_t round_;
  Sizes sizes_;
  std::vector<Bytes> messages_;
  std::vector<ByteSpan> spans_;
};

Sizes all_of(std::size_t bytes) {
  return [bytes](std::int32_t, std::int32_t) { return bytes; };
}

void round(Exchange& exchange, std::int64_t number, const Sizes& sizes,
           Channel channel = Channel::kStep) {
  const Sent sent(exchange, number, sizes);
  std::vector<ByteSpan> received(exchange.hosts());
  exchange.start(channel, {"messages", number}, sent.spans());
  exchange.finish(channel, received);
  sent.expect(received);
}

/// Expects that all hosts are in step.
void go_on(Exchange& exchange) {
  for (std::int64_t number = 900; number < 903; ++number)
    for (const Channel channel : {Channel::kStep, Channel::kAhead})
      round(exchange, number, all_of(1500), channel);
  EXPECT_NO_THROW(exchange.agree(""));
}

class ExchangeContract : public testing::TestWithParam<Kind> {
 protected:
  /// Runs body once per host; hosts of one process run on threads of their own.
  static void on_all_hosts(const std::function<void(Exchange&)>& body) {
    Hosts hosts = GetParam().make();
    if (hosts.size() == 1) return body(*hosts.front());
    std::vector<std::thread> threads;
    for (auto& host : hosts) threads.emplace_back([&] { body(*host); });
    for (auto& thread : threads) thread.join();
  }

  /// Runs an operation on all hosts, as those of an engine: at_fault names the hosts that throw in
  /// it. All are told of the first, and can go on.
  static void expect_failure(const std::function<bool(std::int32_t)>& at_fault,
                             const std::function<void(Exchange&, bool)>& body) {
    on_all_hosts([&](Exchange& exchange) {
      std::int32_t first = 0;
      while (first < exchange.hosts() && !at_fault(first)) ++first;
      ASSERT_LT(first, exchange.hosts());
      const std::string told = "host " + std::to_string(first) + ": disk " + std::to_string(first);
      for (int again = 0; again < 3; ++again) {
        try {
          body(exchange, at_fault(exchange.host()));
          exchange.agree("");
          ADD_FAILURE() << "host " << exchange.host() << " was not told";
        } catch (const GivenUp& error) {
          EXPECT_FALSE(at_fault(exchange.host()));
          EXPECT_EQ(error.what(), told);
          EXPECT_EQ(error.host(), first);
        } catch (const IoError& error) {
          const GivenUp others = exchange.abort(error.what());
          EXPECT_EQ(others.what(), told);
          EXPECT_EQ(others.host(), first);
        }
        go_on(exchange);
      }
    });
  }
  static void fail(const Exchange& exchange) {
    throw IoError("disk " + std::to_string(exchange.host()));
  }
};

TEST_P(ExchangeContract, MessagesOfEverySizeArriveAlignedAndWhole) {
  on_all_hosts([](Exchange& exchange) {
    std::int64_t number = 0;
    for (const std::size_t bytes :
         {0, 1, 7, 8, 63, 64, 65, 1023, 1024, 1025, 4096, 65539, 262144, (3 << 19) + 1})
      round(exchange, number++, all_of(bytes));
  });
}

TEST_P(ExchangeContract, MessagesOfOneRoundMayHaveUnequalSizesAndBeEmpty) {
  on_all_hosts([](Exchange& exchange) {
    for (std::int64_t number = 0; number < 200; ++number)
      round(exchange, number, [number](std::int64_t from, std::int64_t to) {
        const std::int64_t some = from * 7919 + to * 104729 + number * 131;
        return static_cast<std::size_t>(some % 3 == 0 ? 0 : some % 20011);
      });
  });
}

TEST_P(ExchangeContract, OneMayBeTheOnlyOneWhoSends) {
  on_all_hosts([](Exchange& exchange) {
    for (std::int32_t sender = 0; sender < exchange.hosts(); ++sender)
      round(exchange, sender,
            [sender](std::int32_t from, std::int32_t) { return from == sender ? 300000 : 0; });
  });
}

TEST_P(ExchangeContract, ARoundMayBeOpenOnEachChannel) {
  on_all_hosts([](Exchange& exchange) {
    for (std::int64_t number = 0; number < 20; ++number) {
      const Sent ahead(exchange, 100 + number, all_of(number % 2 == 0 ? 100000 : 10));
      std::vector<ByteSpan> received(exchange.hosts());
      exchange.start(Channel::kAhead, {"ids", number + 1}, ahead.spans());
      round(exchange, number, all_of(5000));
      EXPECT_NO_THROW(exchange.agree(""));
      round(exchange, 50 + number, all_of(number % 3 == 0 ? 200000 : 0));
      exchange.finish(Channel::kAhead, received);
      ahead.expect(received);
      round(exchange, 70 + number, all_of(3000));
      ahead.expect(received);  // still there: the channel has started no other round
    }
  });
}

TEST_P(ExchangeContract, RoundsMayBeFinishedInTheOrderInWhichTheyStarted) {
  on_all_hosts([](Exchange& exchange) {
    const Sent first(exchange, 1, all_of(100000)), second(exchange, 2, all_of(70000));
    std::vector<ByteSpan> received(exchange.hosts());
    exchange.start(Channel::kStep, {"rows", 1}, first.spans());
    exchange.start(Channel::kAhead, {"ids", 2}, second.spans());
    exchange.finish(Channel::kStep, received);
    first.expect(received);
    exchange.finish(Channel::kAhead, received);
    second.expect(received);
  });
}

/// A host that has less to read must not take away what the others still read.
TEST_P(ExchangeContract, AMessageStaysUntilItIsRead) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  on_all_hosts([](Exchange& exchange) {
    const auto last = static_cast<std::size_t>(exchange.hosts()) - 1;
    Bytes mine(kBytes, std::byte{7});
    std::vector<ByteSpan> send(last + 1), received(last + 1);
    if (exchange.host() == static_cast<std::int32_t>(last)) send[0] = mine;
    exchange.start(Channel::kStep, {"rows"}, send);
    exchange.finish(Channel::kStep, received);
    if (exchange.host() != 0) std::fill(mine.begin(), mine.end(), std::byte{0});
    EXPECT_EQ(received[last].size(), exchange.host() == 0 ? kBytes : 0);
    for (const std::byte each : received[last]) {
      if (each != std::byte{7}) return ADD_FAILURE() << "a byte was taken away";
    }
  });
}

/// An exchange between processes has a deadline, which is longer than this.
TEST_P(ExchangeContract, ALateHostIsWaitedFor) {
  on_all_hosts([](Exchange& exchange) {
    for (std::int32_t late = 0; late < exchange.hosts(); ++late) {
      if (exchange.host() == late) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_NO_THROW(exchange.agree(""));
    }
  });
}

TEST_P(ExchangeContract, AgreeReturnsWhenNobodyErrs) {
  on_all_hosts([](Exchange& exchange) {
    for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(exchange.agree(""));
  });
}

TEST_P(ExchangeContract, TheErrorOfTheFirstIsThrownByAllAndTheNextCallWorks) {
  on_all_hosts([](Exchange& exchange) {
    const std::string text(3000, 'x');  // longer than a small segment
    const auto told = [&](std::int32_t host) {
      return "host " + std::to_string(host) + ": " + text + std::to_string(host);
    };
    const auto own = text + std::to_string(exchange.host());
    for (std::int32_t at_fault = 0; at_fault < exchange.hosts(); ++at_fault) {
      EXPECT_EQ(
          refusal<StateError>([&] { exchange.agree(exchange.host() == at_fault ? own : ""); }),
          told(at_fault));
      EXPECT_EQ(
          refusal<StateError>([&] { exchange.agree(exchange.host() >= at_fault ? own : ""); }),
          told(at_fault));
    }
    go_on(exchange);
  });
}

TEST_P(ExchangeContract, AHostMayFailBeforeItsFirstMessage) {
  expect_failure([](std::int32_t host) { return host == 0; },
                 [](Exchange& exchange, bool fails) {
                   if (fails) fail(exchange);
                   round(exchange, 1, all_of(200000));
                   round(exchange, 2, all_of(200000));
                 });
}

TEST_P(ExchangeContract, AHostMayFailWhileARoundIsOpen) {
  Bytes much(200000);
  expect_failure([](std::int32_t host) { return host == 0; },
                 [&](Exchange& exchange, bool fails) {
                   const std::vector<ByteSpan> send(exchange.hosts(), much);
                   std::vector<ByteSpan> received(exchange.hosts());
                   exchange.start(Channel::kStep, {"rows"}, send);
                   if (fails) fail(exchange);
                   exchange.finish(Channel::kStep, received);
                   round(exchange, 2, all_of(200000));
                 });
}

TEST_P(ExchangeContract, AHostMayFailBetweenTwoRounds) {
  expect_failure([](std::int32_t host) { return host == 0; },
                 [](Exchange& exchange, bool fails) {
                   round(exchange, 1, all_of(200000));
                   if (fails) fail(exchange);
                   round(exchange, 2, all_of(200000));
                 });
}

TEST_P(ExchangeContract, AHostMayFailAfterItsLastMessage) {
  expect_failure([](std::int32_t host) { return host == 0; },
                 [](Exchange& exchange, bool fails) {
                   round(exchange, 1, all_of(200000));
                   if (fails) fail(exchange);
                 });
}

TEST_P(ExchangeContract, AHostMayFailWhileRoundsAreOpenOnSeveralChannels) {
  Bytes much(300000);
  for (const int failing : {0, 1, 2}) {
    expect_failure([](std::int32_t host) { return host == 0; },
                   [&](Exchange& exchange, bool fails) {
                     const std::vector<ByteSpan> send(exchange.hosts(), much);
                     std::vector<ByteSpan> received(exchange.hosts());
                     if (fails && failing == 0) fail(exchange);
                     exchange.start(Channel::kAhead, {"ids"}, send);
                     if (fails && failing == 1) fail(exchange);
                     exchange.start(Channel::kStep, {"rows"}, send);
                     if (fails && failing == 2) fail(exchange);
                     exchange.finish(Channel::kStep, received);
                     exchange.start(Channel::kStep, {"rows"}, send);
                     exchange.finish(Channel::kAhead, received);
                     exchange.finish(Channel::kStep, received);
                   });
  }
}

TEST_P(ExchangeContract, TheFirstIsNamedIfSeveralFail) {
  expect_failure([](std::int32_t host) { return host < 2; },
                 [](Exchange& exchange, bool fails) {
                   round(exchange, 1, all_of(100000));
                   if (fails) fail(exchange);
                   round(exchange, 2, all_of(100000));
                 });
}

TEST_P(ExchangeContract, TheFirstIsNamedIfSeveralFailInDifferentRounds) {
  Bytes much(200000);
  expect_failure([](std::int32_t host) { return host < 2; },
                 [&](Exchange& exchange, bool fails) {
                   const std::vector<ByteSpan> send(exchange.hosts(), much);
                   std::vector<ByteSpan> received(exchange.hosts());
                   if (fails && exchange.host() == 1) fail(exchange);
                   exchange.start(Channel::kStep, {"rows"}, send);
                   if (fails) fail(exchange);
                   exchange.start(Channel::kAhead, {"ids"}, send);
                   exchange.finish(Channel::kStep, received);
                   exchange.finish(Channel::kAhead, received);
                 });
}

TEST_P(ExchangeContract, AllMayFail) {
  expect_failure([](std::int32_t) { return true; },
                 [](Exchange& exchange, bool) { fail(exchange); });
}

TEST_P(ExchangeContract, ARoundIsOpenUntilItIsFinishedOrAHostGivesUp) {
  using Open = std::pair<bool, bool>;  // on kStep, on kAhead
  on_all_hosts([](Exchange& exchange) {
    const auto open = [&] {
      return Open(exchange.is_open(Channel::kStep), exchange.is_open(Channel::kAhead));
    };
    const Sent sent(exchange, 1, all_of(2000));
    std::vector<ByteSpan> received(exchange.hosts());
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(open(), Open(false, false));
      exchange.start(Channel::kAhead, {"ids"}, sent.spans());
      EXPECT_EQ(open(), Open(false, true));
      exchange.start(Channel::kStep, {"rows"}, sent.spans());
      EXPECT_EQ(open(), Open(true, true));
      exchange.finish(Channel::kStep, received);
      EXPECT_EQ(open(), Open(false, true));
      if (again == 1) {
        exchange.finish(Channel::kAhead, received);
        EXPECT_EQ(open(), Open(false, false));
      } else if (exchange.host() == 0) {
        exchange.abort("no paper");
      } else {
        EXPECT_THROW(round(exchange, 2, all_of(10)), GivenUp);
      }
      EXPECT_EQ(open(), Open(false, false));
    }
    go_on(exchange);
  });
}

TEST_P(ExchangeContract, HostsThatStartARoundDifferentlyAreToldAndCanGoOn) {
  struct Case {
    std::function<void(Exchange&, bool)> calls;  ///< called by a host; `true` on host 0
    std::string own, theirs;                     ///< stages that the error names
  };
  const auto open = [](Exchange& exchange, Channel channel, const Stage& stage, std::size_t bytes) {
    const Bytes much(bytes);
    const std::vector<ByteSpan> send(exchange.hosts(), much);
    std::vector<ByteSpan> received(exchange.hosts());
    exchange.start(channel, stage, send);
    exchange.finish(channel, received);
  };
  std::vector<Case> cases;
  for (const std::size_t bytes : {0, 300000}) {
    cases.push_back({[=](Exchange& exchange, bool first) {
                       open(exchange, Channel::kStep, {first ? "rows" : "sums", 3}, bytes);
                     },
                     "rows of step 3", "sums of step 3"});
    cases.push_back({[=](Exchange& exchange, bool first) {
                       open(exchange, Channel::kStep, {"rows", first ? 3 : 4}, bytes);
                     },
                     "rows of step 3", "rows of step 4"});
    cases.push_back({[=](Exchange& exchange, bool first) {
                       open(exchange, first ? Channel::kStep : Channel::kAhead, {"ids"}, bytes);
                     },
                     "ids on channel 0", "ids on channel 1"});
    cases.push_back({[=](Exchange& exchange, bool first) {
                       if (!first) exchange.agree("");
                       open(exchange, Channel::kStep, {"rows"}, bytes);
                     },
                     "rows", "agreement"});
    cases.push_back({[=](Exchange& exchange, bool first) {  // the ids of host 0 stay unread
                       const Bytes much(bytes);
                       const std::vector<ByteSpan> send(exchange.hosts(), much);
                       std::vector<ByteSpan> received(exchange.hosts());
                       exchange.start(Channel::kAhead, {"ids", 1}, send);
                       if (!first) exchange.finish(Channel::kAhead, received);
                       open(exchange, first ? Channel::kStep : Channel::kAhead,
                            {first ? "rows" : "ids", 2}, bytes);
                     },
                     "rows of step 2", "ids of step "});
  }
  on_all_hosts([&](Exchange& exchange) {
    if (exchange.hosts() == 1) return;
    for (const Case& each : cases) {
      const std::string text =
          refusal<GivenUp>([&] { each.calls(exchange, exchange.host() == 0); });
      EXPECT_THAT(text, testing::HasSubstr(": hosts must make the same calls in the same order: "));
      EXPECT_THAT(text, testing::HasSubstr("in: " + each.own));
      EXPECT_THAT(text, testing::HasSubstr("in: " + each.theirs));
      EXPECT_FALSE(exchange.is_open(Channel::kStep));
      EXPECT_FALSE(exchange.is_open(Channel::kAhead));
      go_on(exchange);
    }
  });
}

TEST_P(ExchangeContract, CallsOutOfOrderAreRefusedAndChangeNothing) {
  on_all_hosts([](Exchange& exchange) {
    const Sent sent(exchange, 1, all_of(2000));
    std::vector<ByteSpan> received(exchange.hosts()), more(exchange.hosts() + 1);
    const auto count = std::to_string(exchange.hosts());
    EXPECT_EQ(refusal<StateError>([&] { exchange.finish(Channel::kStep, received); }),
              "exchange: finish: no round is open on channel 0");
    EXPECT_EQ(refusal<ValueError>([&] { exchange.start(Channel::kStep, {"rows"}, more); }),
              "exchange: start: needs one message for each of " + count + " hosts, got " +
                  std::to_string(more.size()));
    EXPECT_EQ(
        refusal<ValueError>([&] { exchange.start(static_cast<Channel>(3), {}, sent.spans()); }),
        "exchange: start: channel must be 0..2, got 3");
    exchange.start(Channel::kStep, {"rows", 12}, sent.spans());
    EXPECT_EQ(refusal<StateError>([&] { exchange.start(Channel::kStep, {"rows"}, sent.spans()); }),
              "exchange: start: rows of step 12 is still open on channel 0");
    EXPECT_EQ(refusal<ValueError>([&] { exchange.finish(Channel::kStep, more); }),
              "exchange: finish: needs one message for each of " + count + " hosts, got " +
                  std::to_string(more.size()));
    exchange.finish(Channel::kStep, received);
    sent.expect(received);
    go_on(exchange);
  });
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ExchangeContract, testing::ValuesIn(exchange_contract::kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace embertable
