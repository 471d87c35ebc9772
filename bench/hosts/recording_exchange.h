#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory.h"
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

/// Sends the messages of recorded rounds, from memory that is always the same.
class BareMessages {
 public:
  BareMessages(Exchange& exchange, std::vector<RecordedRound> rounds)
      : exchange_(exchange), rounds_(std::move(rounds)) {
    std::size_t most = 0;
    for (const RecordedRound& round : rounds_)
      most = std::max(most, *std::ranges::max_element(round.bytes));
    memory_ = Mapping(static_cast<std::int64_t>(most));
    memory_.touch();
  }

  void run() {
    const auto hosts = static_cast<std::size_t>(exchange_.hosts());
    std::vector<ByteSpan> send(hosts), received(hosts);
    for (const RecordedRound& round : rounds_) {
      for (std::size_t host = 0; host < hosts; ++host)
        send[host] = {memory_.data(), round.bytes[host]};
      exchange_.start(round.channel, {"bare messages"}, send);
      exchange_.finish(round.channel, received);
    }
  }

  /// Returns the bytes that a run sends to other hosts than this one.
  std::size_t bytes_to_others() const {
    std::size_t bytes = 0;
    for (const RecordedRound& round : rounds_)
      bytes += std::accumulate(round.bytes.begin(), round.bytes.end(), std::size_t{0}) -
               round.bytes[static_cast<std::size_t>(exchange_.host())];
    return bytes;
  }

 private:
  Exchange& exchange_;
  std::vector<RecordedRound> rounds_;
  Mapping memory_;
};

}  // namespace embertable::bench
