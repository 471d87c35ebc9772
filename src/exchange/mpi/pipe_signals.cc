#include "exchange/mpi/pipe_signals.h"

namespace embertable::mpi {
namespace {

sigset_t pipe_signal() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_pending() noexcept {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

PipeSignalsHeld::PipeSignalsHeld() noexcept : was_pending_(is_pending()) {
  const sigset_t set = pipe_signal();
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
}

PipeSignalsHeld::~PipeSignalsHeld() {
  if (!was_pending_ && is_pending()) {  // else it is the caller's
    const sigset_t set = pipe_signal();
    const timespec at_once = {};  // another thread may have taken a signal of the whole process
    sigtimedwait(&set, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

}  // namespace embertable::mpi
