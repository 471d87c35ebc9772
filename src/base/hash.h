#pragma once

#include <cstddef>
#include <cstdint>
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

  /// Adds the bytes of numbers, of each NaN those of the quiet one without sign and payload: which
  /// NaN an operation gives is the compiler's and the processor's choice.
  void update_numbers(std::span<const float> numbers) noexcept;

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

/// Returns a number that is the same within a process, differs between processes and cannot be
/// guessed. Where a hash decides the place of a key in a table, it is mixed with this number, or
/// chosen keys could all get one place and take quadratic time. No result may depend on it.
std::uint64_t process_seed() noexcept;

}  // namespace embertable
