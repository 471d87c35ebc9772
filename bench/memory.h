#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace embertable::bench {

/// Zeroed memory that starts on a 2 MiB border, with huge pages asked for. Owns the mapping; moves.
/// Nothing is resident before it is touched.
class HugePages {
 public:
  HugePages() = default;

  /// Throws std::bad_alloc if the address space is refused.
  explicit HugePages(std::size_t bytes);
  HugePages(HugePages&& other) noexcept;
  HugePages& operator=(HugePages&& other) noexcept;
  ~HugePages();

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  void* data_ = nullptr;
};

/// Hands out arrays from huge pages, each starting at another cache set than the one before: arrays
/// that all start on a page border fight for the same sets. Everything is given back at once, by
/// the destructor.
class Arena {
 public:
  /// `count` elements on a cache line of their own, with a line to spare behind them.
  template <class T>
  T* take(std::size_t count) {
    static_assert(std::is_trivial_v<T>);
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }

 private:
  void* take_bytes(std::size_t bytes);

  std::vector<HugePages> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_bytes_ = 0;
  std::size_t taken_ = 0;
};

/// What the kernel says could be used without swapping. 0 where it does not say.
std::size_t available_memory_bytes();

}  // namespace embertable::bench
