#include "bench/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <new>
#include <string>
#include <utility>

namespace embertable::bench {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;
constexpr std::size_t kLineBytes = 64;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

HugePages::HugePages(std::size_t bytes) {
  const std::size_t used = round_up(std::max<std::size_t>(bytes, 1), kHugePageBytes);
  mapped_bytes_ = used + kHugePageBytes;
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto start = round_up(reinterpret_cast<std::uintptr_t>(mapping_), kHugePageBytes);
  data_ = reinterpret_cast<void*>(start);
  madvise(data_, used, MADV_HUGEPAGE);
}

HugePages::HugePages(HugePages&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)) {}

HugePages& HugePages::operator=(HugePages&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(data_, other.data_);
  return *this;
}

HugePages::~HugePages() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

void* Arena::take_bytes(std::size_t bytes) {
  const std::size_t shift = taken_++ * 7 % 61 * kLineBytes;
  const std::size_t needed = round_up(bytes + kLineBytes, kLineBytes) + shift;
  if (needed > left_bytes_) {
    left_bytes_ = std::max(needed, kChunkBytes);
    next_ = chunks_.emplace_back(left_bytes_).as<std::byte>();
  }
  void* const taken = next_;
  next_ += needed;
  left_bytes_ -= needed;
  return taken;
}

std::size_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("MemAvailable:")) {
      return std::stoull(line.substr(line.find(':') + 1)) * 1024;
    }
  }
  return 0;
}

}  // namespace embertable::bench
