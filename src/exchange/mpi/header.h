#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/crc32c.h"
#include "embertable/exchange.h"
#include "exchange/started.h"

namespace embertable::mpi {

inline constexpr std::int32_t kFailed = -1;   ///< the host gives up; `bytes` of its reason follow
inline constexpr std::int32_t kFollows = -2;  ///< it does so because another does

/// Limits of the bytes of a message, beyond any machine's memory, and of a reason.
inline constexpr std::int64_t kMostMessage = std::int64_t{1} << 46;
inline constexpr std::int64_t kMostReason = 4000;

/// Goes ahead of each message, and of nothing if a host gives up. A host's headers to another are
/// numbered; they are read in order, and each makes known on which channel its message comes.
struct Header {
  std::int64_t round = 0;
  std::int64_t bytes = 0;
  std::int64_t step = -1;
  std::int32_t channel = 0;     ///< or kFailed or kFollows
  std::uint32_t sum = 0;        ///< CRC-32C of the stage's text
  std::int64_t what_bytes = 0;  ///< its length
  std::array<char, 64> what{};  ///< its beginning, as much as fits

  void set(const Started& started) noexcept {
    const std::string_view text = started.stage.what;
    channel = static_cast<std::int32_t>(started.channel);
    step = started.stage.step;
    sum = crc32c(text);
    what_bytes = std::ssize(text);
    text.copy(what.data(), what.size());
  }

  bool is(const Started& started) const noexcept {
    Header same;
    same.set(started);
    return channel == same.channel && step == same.step && sum == same.sum &&
           what_bytes == same.what_bytes && what == same.what;
  }

  bool gives_up() const noexcept { return channel < 0; }

  /// Returns false if no process of ours sends this as the header of a round, which is to be this
  /// one, or to give up.
  bool is_valid(std::int64_t next_round) const noexcept {
    if (gives_up())
      return (channel == kFailed || channel == kFollows) && bytes >= 0 && bytes <= kMostReason;
    return channel < kNumChannels && round == next_round && bytes >= 0 && bytes <= kMostMessage;
  }

  /// Borrows from this header.
  Started started() const noexcept {
    const auto shown = std::min(static_cast<std::size_t>(what_bytes), what.size());
    return {static_cast<Channel>(channel), {{what.data(), shown}, step}};
  }
};

struct HeaderMessage {
  Header header;
  std::array<char, kMostReason> reason{};
};

}  // namespace embertable::mpi
