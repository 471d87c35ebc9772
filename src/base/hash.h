#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace embertable {

/// Computes the XXH3-128 of bytes that come in pieces; where one piece ends and the next begins
/// makes no difference. For checksums of blocks and files, not for security. A moved-from hasher
/// may only be destroyed or assigned to.
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void update(std::span<const std::byte> bytes) noexcept;

  /// Forgets all bytes.
  void reset() noexcept;

  /// Returns the hash of the bytes so far: 32 lower-case digits, in the form that `xxhsum -H128`
  /// prints.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the hash of one piece.
std::string hash_hex(std::span<const std::byte> bytes);

}  // namespace embertable
