#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace embertable::checkpoint {

/// XXH3 with seed 0 over bytes that come in pieces. Source: xxHash, XXH3_64bits and XXH3_128bits.
class Checksum {
 public:
  enum class Bits : std::uint8_t { k64, k128 };
  explicit Checksum(Bits bits);
  ~Checksum();

  void update(std::span<const std::byte> bytes) noexcept;

  /// Of the bytes so far: 16 or 32 lowercase hexadecimal digits, highest first, as xxhsum prints
  /// them.
  std::string hex() const;

  /// Forgets all bytes.
  void reset() noexcept;

 private:
  struct State;
  Bits bits_;
  std::unique_ptr<State> state_;
};

/// The same in one call.
std::string xxh64_hex(std::span<const std::byte> bytes);
std::string xxh128_hex(std::span<const std::byte> bytes);

}  // namespace embertable::checkpoint
