#pragma once

#include <nanobind/nanobind.h>

namespace embertable::python {

/// Without the GIL for as long as this lives. A thread that would take it back while the
/// interpreter ends waits for the end of the process instead: Python would unwind it through the
/// frames of C++.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// With the GIL for as long as this lives, on any thread; else as above.
class WithGil {
 public:
  WithGil();
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Has threads wait from the interpreter's last steps on. To be called once.
void watch_for_the_end();

}  // namespace embertable::python
