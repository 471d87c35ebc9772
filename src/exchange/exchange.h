#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace embertable {

using ByteSpan = std::span<const std::byte>;

/// Communication between the hosts of an engine: one object per host, every call collective (all
/// hosts make the same calls in the same order). If a host is missing at the deadline, the call
/// throws StateError naming it on all others; after that, and after `abort`, every call throws.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual std::int32_t host() const noexcept = 0;
  virtual std::int32_t hosts() const noexcept = 0;

  /// Sends send[p] to host p. received[p] becomes what host p sent to this one, 64-byte aligned,
  /// valid until this host's next call. Both spans have hosts() elements; a host's message to
  /// itself is passed without a copy.
  virtual void all_to_all(std::span<const ByteSpan> send, std::span<ByteSpan> received) = 0;

  /// Compares errors: every host passes an error's text, or "" for none. Returns if no host has
  /// one; otherwise all throw StateError naming the first host at fault and its text.
  virtual void agree(std::string_view error) = 0;

  /// Says that this host cannot go on. Not collective. The others' calls throw StateError naming
  /// the host and the reason.
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace embertable
