#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "embertable/exchange.h"
#include "exchange/started.h"

namespace embertable {

/// The rounds of one host: checks the order of calls and numbers the rounds, on all channels
/// together, from 1. The numbers start again after hosts gave up.
class OpenRounds {
 public:
  explicit OpenRounds(std::int32_t hosts) : hosts_(static_cast<std::size_t>(hosts)) {}

  /// Opens a round. Returns its number.
  std::int64_t start(Channel channel, const Stage& stage, std::size_t messages) {
    const std::size_t index = checked(channel, "start", messages);
    if (open_[index].number != 0)
      refuse("start",
             to_string(open_[index].stage) + " is still open on channel " + std::to_string(index));
    open_[index] = {++last_, stage};
    return last_;
  }

  /// Returns the number of the channel's open round.
  std::int64_t finish(Channel channel, std::size_t messages) const {
    const std::size_t index = checked(channel, "finish", messages);
    if (open_[index].number == 0)
      refuse("finish", "no round is open on channel " + std::to_string(index));
    return open_[index].number;
  }

  /// Returns the number of the last round that was started, 0 before the first.
  std::int64_t last() const noexcept { return last_; }

  void close(Channel channel) noexcept { open_[static_cast<std::size_t>(channel)] = {}; }

  /// Closes all, and numbers from 1 again.
  void restart() noexcept {
    open_ = {};
    last_ = 0;
  }

  /// Returns the number of the channel's open round, 0 if there is none.
  std::int64_t number(Channel channel) const noexcept {
    return open_[static_cast<std::size_t>(channel)].number;
  }
  const Stage& stage(Channel channel) const noexcept {
    return open_[static_cast<std::size_t>(channel)].stage;
  }
  bool is_open(Channel channel) const noexcept { return number(channel) != 0; }

  /// Returns how the round of a number was started. Requires: it is open.
  Started started(std::int64_t number) const noexcept {
    const auto found = std::ranges::find(open_, number, &Round::number);
    EMBERTABLE_ASSERT(found != open_.end());
    return {static_cast<Channel>(found - open_.begin()), found->stage};
  }

  bool any() const noexcept {
    for (const Round& round : open_)
      if (round.number != 0) return true;
    return false;
  }

 private:
  struct Round {
    std::int64_t number = 0;  ///< 0: the channel has no open round
    Stage stage;
  };

  std::size_t checked(Channel channel, const char* call, std::size_t messages) const {
    const auto index = static_cast<std::int32_t>(channel);
    if (index < 0 || index >= kNumChannels)
      throw ValueError(std::string("exchange: ") + call + ": channel must be 0.." +
                       std::to_string(kNumChannels - 1) + ", got " + std::to_string(index));
    if (messages != hosts_)
      throw ValueError(std::string("exchange: ") + call + ": needs one message for each of " +
                       std::to_string(hosts_) + " hosts, got " + std::to_string(messages));
    return static_cast<std::size_t>(index);
  }
  [[noreturn]] static void refuse(const char* call, const std::string& why) {
    throw StateError(std::string("exchange: ") + call + ": " + why);
  }

  std::size_t hosts_;
  std::array<Round, kNumChannels> open_;
  std::int64_t last_ = 0;
};

}  // namespace embertable
