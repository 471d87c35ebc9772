#include "bench/hosts/recording_exchange.h"

namespace embertable::bench {

void RecordingExchange::start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) {
  exchange_->start(channel, stage, send);
  if (!recording_) return;
  RecordedRound& round = rounds_.emplace_back();
  round.channel = channel;
  for (const ByteSpan message : send) round.bytes.push_back(message.size());
}

void RecordingExchange::finish(Channel channel, std::span<ByteSpan> received) {
  exchange_->finish(channel, received);
}

std::vector<RecordedRound> RecordingExchange::end_record() {
  recording_ = false;
  return std::exchange(rounds_, {});
}

std::size_t bytes_to_others(std::span<const RecordedRound> rounds, std::int32_t host) {
  std::size_t bytes = 0;
  for (const RecordedRound& round : rounds)
    for (std::size_t to = 0; to < round.bytes.size(); ++to)
      if (to != static_cast<std::size_t>(host)) bytes += round.bytes[to];
  return bytes;
}

}  // namespace embertable::bench
