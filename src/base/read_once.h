#pragma once

namespace embertable {

/// Returns a value of the caller's memory, which another thread may be changing. The compiler loads
/// it once, so the value that was checked is the value that is used.
template <class T>
T read_once(const T& value) noexcept {
  return *static_cast<const volatile T*>(&value);
}

}  // namespace embertable
