#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

/// Releases the GIL while it lives. If the interpreter is ending, a thread that would take the GIL
/// again waits for the end of the process instead, because Python would unwind it through C++
/// frames.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Holds the GIL while it lives, on any thread; while the interpreter is ending, it waits as
/// WithoutGil does.
class WithGil {
 public:
  WithGil();
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Raises what a handler of a signal raises, KeyboardInterrupt for Ctrl-C, at most a hundred
/// times a second: the check of an Interruption. Requires: the GIL is free.
void raise_signals();

/// Makes threads wait from the interpreter's last steps on. To be called once.
void watch_for_the_end();

}  // namespace embertable::python
