#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace embertable {

/// XXH3-128 of bytes that come in pieces: for checksums of blocks and files, not against forgers.
/// The pieces' borders do not show. A moved-from hasher may only be destroyed or assigned to.
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  ~Hasher();

  void update(std::span<const std::byte> bytes) noexcept;

  /// Forgets all bytes.
  void reset() noexcept;

  /// Hash of the bytes so far: 32 lower-case digits, in the form that `xxhsum -H128` prints.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The hash of one piece.
std::string hash_hex(std::span<const std::byte> bytes);

}  // namespace embertable
