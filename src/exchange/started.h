#pragma once

#include <cstdint>
#include <new>
#include <string>

#include "embertable/exchange.h"

namespace embertable {

/// How a host started a round. All hosts must start it alike.
struct Started {
  Channel channel = Channel::kStep;
  Stage stage;  ///< borrowed

  friend bool operator==(const Started& left, const Started& right) noexcept {
    return left.channel == right.channel && left.stage.what == right.stage.what &&
           left.stage.step == right.stage.step;
  }
};

/// Returns why a round in which two hosts differ cannot be: what each of them does.
inline std::string different_calls(std::int32_t host, const Started& own, std::int32_t other_host,
                                   const Started& other) noexcept {
  const auto text = [&](const Started& started) {
    std::string named = to_string(started.stage);
    if (own.stage.what == other.stage.what && own.stage.step == other.stage.step)
      named += " on channel " + std::to_string(static_cast<std::int32_t>(started.channel));
    return named;
  };
  try {
    return "hosts must make the same calls in the same order: host " + std::to_string(host) +
           " is in: " + text(own) + "; host " + std::to_string(other_host) + " in: " + text(other);
  } catch (const std::bad_alloc&) {
    return "calls differ";  // short enough to need no memory
  }
}

}  // namespace embertable
