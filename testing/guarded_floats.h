#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace embertable {

/// For tests: floats between two pages that cannot be touched; the last one ends where the second
/// begins.
class GuardedFloats {
 public:
  explicit GuardedFloats(std::int64_t count, float value = 0) : count_(count) {
    const std::size_t used = (static_cast<std::size_t>(count) * 4 + kPage - 1) / kPage * kPage;
    bytes_ = used + 2 * kPage;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    mprotect(base_ + kPage, used, PROT_READ | PROT_WRITE);
    data_ = reinterpret_cast<float*>(base_ + kPage + used) - count;
    for (std::int64_t i = 0; i < count; ++i) data_[i] = value;
  }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;
  ~GuardedFloats() { munmap(base_, bytes_); }

  float* data() { return data_; }
  float& operator[](std::int64_t i) { return data_[i]; }
  const float* begin() const { return data_; }
  const float* end() const { return data_ + count_; }
  std::int64_t size() const { return count_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::int64_t count_;
  std::size_t bytes_;
  std::byte* base_;
  float* data_;
};

}  // namespace embertable
