// Messages of other hosts that do not hold what they should.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "embertable/errors.h"
#include "exchange/threads_exchange.h"
#include "step/backward.h"
#include "step/exchange_gradients.h"
#include "step/remote_rows.h"
#include "testing/exchange/altered_exchange.h"
#include "testing/refusal.h"
#include "testing/step/tiny_step.h"

namespace embertable {
namespace {

using MessageBytes = std::vector<std::byte>;
using Alter = std::function<void(MessageBytes&)>;

/// Forms of the step that are sent differently.
struct Form {
  bool accumulates = true;
  bool once = false;
};

/// Two hosts of one core each: host 0 owns rows 0 and 1, host 1 rows 2 and 3. Host 0 is asked
/// for row 1, and host 1 for row 2.
class HostileMessages : public testing::Test {
 protected:
  static std::vector<std::unique_ptr<TinyStep>> two_steps(Form form) {
    std::vector<std::unique_ptr<TinyStep>> steps;
    for (std::int32_t host = 0; host < 2; ++host) {
      TinyStep& tiny = *steps.emplace_back(std::make_unique<TinyStep>(4, 1, 2, host));
      tiny.table().accumulates = form.accumulates;
      if (form.once) tiny.table().once_ranges = RowRanges::of_rows(tiny.table().rows.rows, 2);
    }
    steps[0]->add({{0, 2}}, {1, 1}, false, 0);
    steps[1]->add({{2, 3}, {1}, {2}}, {2, 2, 3, 3, 4, 4}, false, 1);
    return steps;
  }

  static void make_step(TinyStep& tiny, Exchange& exchange) {
    const std::shared_ptr<Executor> executor = make_inline_executor();
    Workers workers(*executor, 0);
    Messages messages(exchange);
    messages.set_step(3);
    RemoteRows(exchange, messages, workers, simd_level()).fetch(tiny.step, true, false);
    GradientExchange(simd_level()).run(tiny.step, messages, workers);
    BackwardRun backward(simd_level(), 1);
    backward.prepare(tiny.step, workers);
    backward.run(workers);
    exchange.agree("");
  }

  /// Makes the step. Returns the error of host 0, to which host 1 sends an altered message.
  static std::string error_of(Form form, const std::string& what, const Alter& alter) {
    const auto steps = two_steps(form);
    auto hosts = make_threads_exchange(2);
    std::string errors[2];
    const auto run = [&](std::int32_t host) {
      AlteredExchange exchange(*hosts[host]);
      if (host == 0)
        exchange.alter = [&](std::string_view stage, std::int32_t, MessageBytes& message) {
          if (stage == what) alter(message);
        };
      try {
        make_step(*steps[host], exchange);
      } catch (const GivenUp&) {  // host 0 says why
      } catch (const IoError& error) {
        errors[host] = error.what();
        exchange.abort(error.what());
      } catch (const ValueError& error) {
        errors[host] = error.what();
        exchange.abort(error.what());
      }
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    EXPECT_EQ(errors[1], "");
    return errors[0];
  }

  static Alter number_at(std::size_t place, std::int64_t number) {
    return [=](MessageBytes& message) {
      ASSERT_LE(place + 8, message.size());
      std::memcpy(message.data() + place, &number, sizeof number);
    };
  }
  static Alter resized(std::size_t bytes) {
    return [=](MessageBytes& message) { message.resize(bytes); };
  }
};

TEST_F(HostileMessages, ThatAskForRowsThatAreNotThere) {
  const std::string what = "row numbers", subject = "host 1: row numbers of step 3: ";
  const auto error = [&](const Alter& alter) { return error_of({}, what, alter); };
  // Its entries, the number of rows that it asks for, and one of them in a byte.
  EXPECT_EQ(error(resized(24)), "");
  EXPECT_EQ(error(number_at(16, 7)),
            subject + "an index must be 0 <= index < 2, got 7, at byte 24 of 24");
  EXPECT_EQ(error(number_at(8, 3)), subject + "a number must be 0..2, got 3, at byte 16 of 24");
  EXPECT_EQ(error(number_at(8, -1)), subject + "a number must be 0..2, got -1, at byte 16 of 24");
  EXPECT_EQ(error(number_at(0, -1)),
            subject + "a number must be 0..17592186044416, got -1, at byte 8 of 24");
  EXPECT_EQ(error(resized(16)),
            subject +
                "the message must hold 1 numbers of 1 bytes more, got 0 bytes, at byte 16 of "
                "16");
  EXPECT_EQ(error(resized(0)),
            subject +
                "the message must hold 1 numbers of 8 bytes more, got 0 bytes, at byte 0 of "
                "0");
  EXPECT_EQ(error(resized(32)),
            subject + "the message must end, got 8 bytes more, at byte 24 of 32");
}

TEST_F(HostileMessages, ThatLackRows) {
  const std::string subject = "host 1: rows of step 3: ";
  EXPECT_EQ(error_of({}, "rows", resized(16)), "");
  EXPECT_EQ(error_of({}, "rows", number_at(8, 2)),
            subject + "a number must be 0..1, got 2, at byte 16 of 16");
  EXPECT_EQ(error_of({}, "rows", resized(4)),
            subject +
                "the message must hold 8 numbers of 1 bytes more, got 4 bytes, at byte 0 of "
                "4");
}

TEST_F(HostileMessages, ThatSendGradientsOfOtherRows) {
  const std::string what = "sums of gradients", subject = "host 1: sums of gradients of step 3: ";
  EXPECT_EQ(error_of({}, what, resized(16)), "");
  EXPECT_EQ(error_of({}, what, number_at(0, 2)),
            subject + "a number must be 0..1, got 2, at byte 8 of 16");
  // By entry, rows are numbered; host 1 told of four entries before.
  const Form listed = {.accumulates = false};
  EXPECT_EQ(error_of(listed, what, resized(24)), "");
  EXPECT_EQ(error_of(listed, what, number_at(0, 5)),
            subject + "a number must be 0..4, got 5, at byte 8 of 24");
  EXPECT_EQ(error_of(listed, what, number_at(8, 1)),
            subject + "an index must be 0 <= index < 1, got 1, at byte 16 of 24");
}

TEST_F(HostileMessages, AreNeverReadBeyondTheirEnd) {
  for (const Form form : {Form{}, Form{.once = true}, Form{.accumulates = false}}) {
    for (const char* what : {"row numbers", "rows", "sums of gradients"}) {
      std::size_t bytes = 0;
      EXPECT_EQ(error_of(form, what, [&](MessageBytes& message) { bytes = message.size(); }), "");
      ASSERT_GE(bytes, 16);
      for (std::size_t at = 0; at < bytes; ++at) {
        for (const int bits : {1, 0x80, 0xff})
          error_of(form, what, [&](MessageBytes& message) { message[at] ^= std::byte(bits); });
        EXPECT_NE(error_of(form, what, resized(at)), "") << what << " of " << at << " bytes";
      }
    }
  }
}

/// Passes everything on, and throws once a round was started.
class FailingAfterStart final : public Exchange {
 public:
  /// The other one is borrowed.
  explicit FailingAfterStart(Exchange& real) : real_(real) {}

  std::int32_t host() const noexcept override { return real_.host(); }
  std::int32_t hosts() const noexcept override { return real_.hosts(); }
  bool is_open(Channel channel) const noexcept override { return real_.is_open(channel); }
  GivenUp abort(std::string_view reason) override { return real_.abort(reason); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    real_.start(channel, stage, send);
    throw IoError("failed after the start");
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    real_.finish(channel, received);
  }

 private:
  Exchange& real_;
};

/// Asks for the rows of step 4 while step 3 runs.
struct AskingAhead {
  std::shared_ptr<Executor> executor = make_inline_executor();
  Workers workers{*executor, 0};
  Messages messages;
  RemoteRows remote;
  TinyStep next{4, 1, 2, 0};

  explicit AskingAhead(Exchange& exchange)
      : messages(exchange), remote(exchange, messages, workers, simd_level()) {
    messages.set_step(3);
    next.add({{0, 2}}, {1, 1});
  }
  std::string error() {
    return refusal<IoError>([&] { remote.ask_ahead(next.step, 4); });
  }
};

TEST(QuestionsAhead, ThatFailAreForgotten) {
  auto hosts = make_threads_exchange(2);
  AlteredExchange exchange(*hosts[0]);
  exchange.before_start = [](Channel channel, const Stage& stage) {
    throw IoError("no channel " + std::to_string(static_cast<int>(channel)) + " for " +
                  to_string(stage));
  };
  AskingAhead asking(exchange);
  const RowNumbers& rows = asking.next.table().features.front().plan->row;
  EXPECT_EQ(asking.error(), "no channel 1 for row numbers of step 4");
  EXPECT_EQ(asking.messages.step(), 3);
  EXPECT_EQ(rows.as<std::uint32_t>()[1], 2) << "a row of the whole table";
  EXPECT_FALSE(asking.next.table().route.translated);
  EXPECT_FALSE(asking.remote.asked_for(asking.next.step));
}

TEST(QuestionsAhead, ThatFailAfterTheyWereSentCountAsAskedWhileTheirRoundIsOpen) {
  auto hosts = make_threads_exchange(2);
  FailingAfterStart exchange(*hosts[0]);
  AskingAhead asking(exchange);
  EXPECT_EQ(asking.error(), "failed after the start");
  EXPECT_EQ(asking.messages.step(), 3);
  EXPECT_TRUE(asking.next.table().route.translated);
  EXPECT_TRUE(asking.remote.asked_for(asking.next.step));

  std::thread other([&] { hosts[1]->abort("host 1 gives up"); });
  exchange.abort("host 0 gives up");
  other.join();
  EXPECT_FALSE(asking.remote.asked_for(asking.next.step));
  EXPECT_FALSE(asking.next.table().route.translated);
}

}  // namespace
}  // namespace embertable
