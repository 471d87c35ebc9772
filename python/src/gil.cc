#include "python/src/gil.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "python/src/callback.h"

namespace embertable::python {
namespace {

namespace nb = nanobind;

std::atomic<bool> ending = false;  ///< functions of atexit run, or have run
std::atomic<std::thread::id> ending_thread;
std::atomic<int> taking = 0;  ///< threads that are about to have the GIL

bool is_finalizing() {
#if defined(Py_LIMITED_API)
  // Python 3.12 has it by another name and outside the stable ABI; all later versions have it.
  using Function = int (*)();
  static const auto ask = [] {
    void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (found == nullptr) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return reinterpret_cast<Function>(found);
  }();
  return ask != nullptr && ask() != 0;
#elif PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// Returns if the GIL may be requested. A function of atexit that waits for this thread gets it
/// after a second.
void wait_if_ending() {
  using Clock = std::chrono::steady_clock;
  if (!ending || ending_thread.load() == std::this_thread::get_id()) return;
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(1);
  while (is_finalizing() || Clock::now() < patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Taking {
 public:
  Taking() {
    wait_if_ending();
    taking.fetch_add(1);
  }
  ~Taking() { taking.fetch_sub(1); }
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;
};

/// Makes all threads finish waiting for the GIL; afterwards none requests it.
void let_threads_have_it() {
  ending_thread = std::this_thread::get_id();
  ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  while (taking.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

}  // namespace

WithoutGil::~WithoutGil() {
  const Taking one;
  PyEval_RestoreThread(state_);
}

WithGil::WithGil() : state_() {
  const Taking one;
  state_ = PyGILState_Ensure();
}

void raise_signals() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point next;
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + std::chrono::milliseconds(10);
  with_gil([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });
}

void watch_for_the_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(let_threads_have_it));
}

}  // namespace embertable::python
