#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace embertable {

/// Use of a range of memory, as the kernel reports it.
struct MemoryUse {
  std::int64_t bytes = 0;           ///< mapped
  std::int64_t resident_bytes = 0;  ///< backed by memory now
  std::int64_t huge_bytes = 0;      ///< part of resident_bytes in huge pages
};

/// Zero-filled memory from the kernel, aligned to 2 MiB, with huge pages advised, between two
/// inaccessible guard pages. Throws IoError naming size and cause.
class Mapping {
 public:
  Mapping() = default;

  /// Requires: bytes >= 0; 0 maps nothing. The size is rounded up to whole pages, and to whole huge
  /// pages if that adds at most an eighth.
  explicit Mapping(std::int64_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  /// Makes the kernel back all of it now, so that no later use waits for a page.
  void touch() const noexcept;

  std::byte* data() const noexcept { return data_; }

  /// Returns the mapped bytes, including the rounding.
  std::int64_t bytes() const noexcept { return bytes_; }

  /// Reads /proc/self/smaps; resident and huge bytes are zero if that fails.
  MemoryUse use() const;

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  void* base_ = nullptr;
  std::int64_t base_bytes_ = 0;
};

/// Scratch memory that steps reuse. Hands out pieces of one mapping, each at least 64-byte aligned
/// and starting at another cache set than the piece before. After `reset` the same requests give
/// the same memory. If the mapping was too small, `reset` replaces it by a larger one, so that a
/// steady caller soon allocates nothing.
class Arena {
 public:
  Arena() = default;
  Arena(Arena&&) noexcept = default;
  Arena& operator=(Arena&&) noexcept = default;

  /// Returns uninitialized memory that is valid until `reset`. Requires: count >= 0. Throws IoError
  /// if the memory cannot be had.
  template <class T>
  std::span<T> take(std::int64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 64);
    constexpr std::int64_t bytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): any T
    return {static_cast<T*>(take_bytes(count * bytes)), static_cast<std::size_t>(count)};
  }

  /// Zero-filled, otherwise like `take`.
  template <class T>
  std::span<T> take_zeros(std::int64_t count) {
    const std::span<T> zeros = take<T>(count);
    std::fill(zeros.begin(), zeros.end(), T{});
    return zeros;
  }

  /// Forgets all pieces. Throws IoError if a larger mapping is due and cannot be had; the arena is
  /// then empty.
  void reset();

  std::int64_t bytes() const noexcept;
  MemoryUse use() const;

 private:
  void* take_bytes(std::int64_t bytes);
  void add_block(std::int64_t bytes);
  void keep_one_block(std::int64_t needed);
  std::vector<Mapping> blocks_;  ///< the last one is handed out from
  std::int64_t used_ = 0;        ///< bytes used of the last block
  std::int64_t last_ = -1;       ///< where the last piece starts in its block; -1: none yet
  std::int64_t taken_ = 0;       ///< upper bound of the bytes that pieces since `reset` need
};

}  // namespace embertable
