#pragma once

#include <signal.h>

namespace embertable::mpi {

/// While this lives, a broken pipe raises no SIGPIPE on this thread: writing to it fails, and
/// nothing else. An MPI that sends over TCP writes to the sockets of processes that were killed,
/// and the signal would end this process, too, before it can say whom it misses.
class PipeSignalsHeld {
 public:
  PipeSignalsHeld() noexcept;
  ~PipeSignalsHeld();
  PipeSignalsHeld(const PipeSignalsHeld&) = delete;
  PipeSignalsHeld& operator=(const PipeSignalsHeld&) = delete;

 private:
  bool was_pending_;
  sigset_t mask_before_;
};

}  // namespace embertable::mpi
