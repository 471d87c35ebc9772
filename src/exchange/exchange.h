#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace embertable {

using ByteSpan = std::span<const std::byte>;

/// How the hosts of an engine meet: one object per host, every call collective (all hosts make the
/// same calls in the same order). A host that is missing at the deadline makes the call throw
/// StateError on all others, naming it; after that, and after `abort`, every call throws.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual std::int32_t host() const noexcept = 0;
  virtual std::int32_t hosts() const noexcept = 0;

  /// Sends send[p] to host p. received[p] becomes what host p sent to this one, 64-byte aligned,
  /// valid until this host's next call. Both spans have hosts() elements; a host's message to
  /// itself is passed without a copy.
  virtual void all_to_all(std::span<const ByteSpan> send, std::span<ByteSpan> received) = 0;

  /// Every host brings an error's text, or none. Returns if none has one; otherwise all throw
  /// StateError naming the first host at fault and its text.
  virtual void agree(std::string_view error) = 0;

  /// Not collective: this host cannot go on. The others' calls throw StateError naming it and the
  /// reason.
  virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace embertable
