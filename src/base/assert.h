#pragma once

namespace embertable {

/// Prints the place and the invariant of the library that is broken, then aborts. Not for anything
/// that a user can cause.
[[noreturn]] void assertion_failed(const char* file, int line, const char* what) noexcept;

}  // namespace embertable

#define EMBERTABLE_ASSERT(condition)                   \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::embertable::assertion_failed(__FILE__, __LINE__, #condition))
