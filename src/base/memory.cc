#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/assert.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 47;  // beyond any address space of today

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kSetSpan = 4096;  // pieces this far apart compete for the same sets of L1
constexpr std::int64_t kStagger = 11 * kLine;  // odd in lines: many pieces in a row stay apart
constexpr std::int64_t kFirstBlock = 64 << 10;
constexpr std::int64_t kMostDoubled = 16 << 20;  // an arena of more grows by an eighth of itself

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t page_bytes() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

[[noreturn]] void throw_no_memory(std::int64_t bytes, int cause) {
  throw IoError("memory: mapping " + std::to_string(bytes) +
                " bytes failed: " + std::strerror(cause));
}

std::int64_t rounded_bytes(std::int64_t bytes) {
  const std::int64_t huge = round_up(bytes, kHugePage);
  return huge - bytes <= bytes / 8 ? huge : round_up(bytes, page_bytes());
}

/// Returns the number of bytes that [first, last) and [from, to) share.
std::int64_t overlap(std::uintptr_t first, std::uintptr_t last, std::uintptr_t from,
                     std::uintptr_t to) {
  const std::uintptr_t begin = std::max(first, from);
  const std::uintptr_t end = std::min(last, to);
  return begin < end ? static_cast<std::int64_t>(end - begin) : 0;
}

}  // namespace

Mapping::Mapping(std::int64_t bytes) {
  EMBERTABLE_ASSERT(bytes >= 0);
  if (bytes == 0) return;
  if (bytes > kMostBytes) throw_no_memory(bytes, ENOMEM);
  // The rest of the reservation stays inaccessible. It keeps the kernel from joining neighbours
  // into one range, whose huge pages could not be told apart, and stops a stray write.
  const std::int64_t mapped = rounded_bytes(bytes);
  const std::int64_t reserved = mapped + kHugePage + page_bytes();
  void* base = mmap(nullptr, static_cast<std::size_t>(reserved), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw_no_memory(bytes, errno);
  const auto past_border = reinterpret_cast<std::uintptr_t>(base) % kHugePage;
  const std::int64_t gap = kHugePage - static_cast<std::int64_t>(past_border);
  std::byte* data = static_cast<std::byte*>(base) + gap;
  if (mprotect(data, static_cast<std::size_t>(mapped), PROT_READ | PROT_WRITE) != 0) {
    const int cause = errno;
    munmap(base, static_cast<std::size_t>(reserved));
    throw_no_memory(bytes, cause);
  }
  madvise(data, static_cast<std::size_t>(mapped),
          MADV_HUGEPAGE);  // a hint: `use` says what the kernel did
  data_ = data;
  bytes_ = mapped;
  base_ = base;
  base_bytes_ = reserved;
}

Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(base_, other.base_);
  std::swap(base_bytes_, other.base_bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, static_cast<std::size_t>(base_bytes_));
}

MemoryUse Mapping::use() const {
  MemoryUse use{.bytes = bytes_};
  const auto first = reinterpret_cast<std::uintptr_t>(data_);
  const auto last = first + static_cast<std::uintptr_t>(bytes_);
  std::ifstream smaps("/proc/self/smaps");
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    std::int64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
      ours = overlap(first, last, from, to) > 0;
    } else if (ours && std::sscanf(line.c_str(), "Rss: %" SCNd64, &kib) == 1) {
      use.resident_bytes += kib * 1024;
    } else if (ours && std::sscanf(line.c_str(), "AnonHugePages: %" SCNd64, &kib) == 1) {
      use.huge_bytes += kib * 1024;
    }
  }
  return use;
}

void Mapping::touch() const noexcept {
#ifdef MADV_POPULATE_WRITE
  if (bytes_ > 0 && madvise(data_, static_cast<std::size_t>(bytes_), MADV_POPULATE_WRITE) == 0)
    return;
#endif
  constexpr std::int64_t kSmallPage = 4096;
  for (std::int64_t at = 0; at < bytes_; at += kSmallPage) {
    volatile std::byte* page = data_ + at;
    *page = *page;
  }
}

void* Arena::take_bytes(std::int64_t bytes) {
  const std::int64_t size = round_up(std::max<std::int64_t>(bytes, 1), kLine);
  for (;;) {
    if (!blocks_.empty()) {
      std::int64_t start = used_;
      if ((start - last_) % kSetSpan == 0) start += kStagger;
      if (start + size <= blocks_.back().bytes()) {
        taken_ += size + kStagger;
        used_ = start + size;
        last_ = start;
        return blocks_.back().data() + start;
      }
    }
    add_block(size);
  }
}

void Arena::add_block(std::int64_t bytes) {
  const std::int64_t held = this->bytes();
  const std::int64_t growth = std::max(std::min(held, kMostDoubled), held / 8);
  blocks_.emplace_back(std::max({kFirstBlock, growth, bytes + kStagger}));
  blocks_.back().touch();
  used_ = 0;
}

void Arena::reset() {
  const std::int64_t needed = taken_;
  taken_ = 0;
  used_ = 0;
  last_ = -1;
  if (blocks_.size() > 1) keep_one_block(needed);
}

void Arena::keep_one_block(std::int64_t needed) {
  if (blocks_.back().bytes() >= needed) {
    blocks_.erase(blocks_.begin(), blocks_.end() - 1);
  } else {
    blocks_.clear();
    blocks_.emplace_back(needed + needed / 16);  // the next need may be a little more
    blocks_.back().touch();
  }
}

std::int64_t Arena::bytes() const noexcept {
  std::int64_t sum = 0;
  for (const Mapping& block : blocks_) sum += block.bytes();
  return sum;
}

MemoryUse Arena::use() const {
  MemoryUse sum;
  for (const Mapping& block : blocks_) {
    const MemoryUse use = block.use();
    sum.bytes += use.bytes;
    sum.resident_bytes += use.resident_bytes;
    sum.huge_bytes += use.huge_bytes;
  }
  return sum;
}

}  // namespace embertable
