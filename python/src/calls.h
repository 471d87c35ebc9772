#pragma once

#include <cstdint>
#include <vector>

namespace embertable::python {

/// The process in which an object was made. A fork of it has none of its threads.
class Process {
 public:
  Process();
  bool is_here() const noexcept;

  /// Throws StateError naming `what` in a fork of the process.
  void require_here(const char* what) const;

 private:
  std::uint32_t forks_;
};

/// Marks this thread as inside a call of an object. A function of the caller's that the object
/// calls there must not call it: it would wait for the outer call, which waits for the function.
class Inside {
 public:
  /// Throws StateError if this thread is inside a call of the object.
  explicit Inside(const void* object);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace embertable::python
