#include "testing/failing_allocation.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \
    "-Wmismatched-new-delete"  // inlined, the pairs below are taken apart
#endif

using embertable::FailingAllocation;

namespace {

void* allocate(std::size_t bytes) noexcept {
  return FailingAllocation::fails_now(bytes) ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  if (FailingAllocation::fails_now(bytes)) return nullptr;
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return or_throw(allocate(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// The linker's --wrap=mmap gives the library's calls of mmap to __wrap_mmap.
extern "C" {
void* __real_mmap(void*, std::size_t, int, int, int, off_t);  // NOLINT: the linker's names

void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,  // NOLINT
                  off_t offset) {
  if (FailingAllocation::fails_now(bytes)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return __real_mmap(address, bytes, protection, flags, file, offset);
}
}
