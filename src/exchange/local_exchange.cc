#include "exchange/local_exchange.h"

#include <array>

#include "exchange/open_rounds.h"

namespace embertable {
namespace {

class LocalExchange final : public Exchange {
 public:
  std::int32_t host() const noexcept override { return 0; }
  std::int32_t hosts() const noexcept override { return 1; }

  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    rounds_.start(channel, stage, send.size());
    message_[static_cast<std::size_t>(channel)] = send[0];
  }

  void finish(Channel channel, std::span<ByteSpan> received) override {
    rounds_.finish(channel, received.size());
    rounds_.close(channel);
    received[0] = message_[static_cast<std::size_t>(channel)];
  }

  bool is_open(Channel channel) const noexcept override { return rounds_.is_open(channel); }

  GivenUp abort(std::string_view reason) override {
    rounds_.restart();
    return {0, reason};
  }

 private:
  OpenRounds rounds_{1};
  std::array<ByteSpan, kNumChannels> message_;
};

}  // namespace

std::unique_ptr<Exchange> make_local_exchange() { return std::make_unique<LocalExchange>(); }

}  // namespace embertable
