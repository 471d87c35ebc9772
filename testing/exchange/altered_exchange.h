#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/exchange.h"

namespace embertable {

/// For tests: an exchange that passes on what another does, but for what a test changes.
class AlteredExchange final : public Exchange {
 public:
  /// The other one is borrowed.
  explicit AlteredExchange(Exchange& real) : real_(real) {}

  /// Called before each round.
  std::function<void(Channel, const Stage&)> before_start = [](Channel, const Stage&) {};

  /// Changes what came from another host in a round for `what`.
  std::function<void(std::string_view what, std::int32_t from, std::vector<std::byte>& message)>
      alter = [](std::string_view, std::int32_t, std::vector<std::byte>&) {};

  std::int32_t host() const noexcept override { return real_.host(); }
  std::int32_t hosts() const noexcept override { return real_.hosts(); }
  bool is_open(Channel channel) const noexcept override { return real_.is_open(channel); }
  GivenUp abort(std::string_view reason) override { return real_.abort(reason); }

  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    before_start(channel, stage);
    round_of(channel).what = stage.what;
    real_.start(channel, stage, send);
  }

  void finish(Channel channel, std::span<ByteSpan> received) override {
    Round& round = round_of(channel);
    real_.finish(channel, received);
    round.messages.resize(received.size());
    for (std::int32_t from = 0; from < hosts(); ++from) {
      if (from == host()) continue;
      std::vector<std::byte>& message = round.messages[from];
      message.assign(received[from].begin(), received[from].end());
      alter(round.what, from, message);
      received[from] = message;
    }
  }

 private:
  struct Round {
    std::string what;
    std::vector<std::vector<std::byte>> messages;  ///< by host, what was received
  };
  Round& round_of(Channel channel) { return rounds_[static_cast<std::size_t>(channel)]; }

  Exchange& real_;
  std::array<Round, kNumChannels> rounds_;
};

}  // namespace embertable
