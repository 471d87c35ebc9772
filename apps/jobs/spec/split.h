#pragma once

#include <cstdint>

namespace embertable::jobs {

/// Use of a row of the data.
enum class Part : std::uint8_t { kTest = 0, kValidation = 1, kTraining = 2 };

/// True unless the value was read from a file that is not what it should be.
inline bool is_part(Part part) noexcept { return part <= Part::kTraining; }

inline std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Returns the key of a pair of whole numbers, a user and an item.
inline std::uint64_t pair_key(std::int64_t first, std::int64_t second) noexcept {
  return (static_cast<std::uint64_t>(first) << 32) | static_cast<std::uint64_t>(second);
}

/// Returns 0..9. Equal keys fall into one bucket; another salt gives other buckets, 0 leaves the
/// key as it is.
inline int split_bucket(std::uint64_t key, std::uint64_t salt = 0) noexcept {
  return static_cast<int>(splitmix64(key ^ (salt != 0 ? splitmix64(salt) : 0)) % 10);
}

/// Bucket 0 is the test part, bucket 1 the validation part, all others train.
inline Part split_part(std::uint64_t key, std::uint64_t salt = 0) noexcept {
  const int bucket = split_bucket(key, salt);
  return bucket == 0 ? Part::kTest : bucket == 1 ? Part::kValidation : Part::kTraining;
}

}  // namespace embertable::jobs
