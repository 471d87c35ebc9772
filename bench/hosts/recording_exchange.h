#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/exchange.h"

namespace embertable::bench {

/// The sizes of what this host sent to each host in one round.
struct RecordedRound {
  Channel channel = Channel::kStep;
  std::vector<std::size_t> bytes;
};

/// Passes all calls to another exchange, and writes down what they send where it is asked to.
class RecordingExchange final : public Exchange {
 public:
  explicit RecordingExchange(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    exchange_->start(channel, stage, send);
    if (!recording_) return;
    RecordedRound& round = rounds_.emplace_back();
    round.channel = channel;
    for (const ByteSpan message : send) round.bytes.push_back(message.size());
  }
  void finish(Channel channel, std::span<ByteSpan> received) override {
    exchange_->finish(channel, received);
  }
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view reason) override { return exchange_->abort(reason); }

  /// Records all rounds from now on.
  void begin_record() { recording_ = true; }

  /// Returns the rounds since `begin_record`.
  std::vector<RecordedRound> end_record() {
    recording_ = false;
    return std::exchange(rounds_, {});
  }

 private:
  std::unique_ptr<Exchange> exchange_;
  bool recording_ = false;
  std::vector<RecordedRound> rounds_;
};

}  // namespace embertable::bench
