#include "exchange/mpi/idling.h"

#include <algorithm>
#include <thread>

namespace embertable::mpi {

void Idling::pause() const noexcept {
  using std::chrono::microseconds;
  const Clock::duration idle = time();
  if (idle < microseconds(50)) return;
  if (idle < microseconds(10'000)) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min<Clock::duration>(idle / 64, microseconds(1000)));
}

}  // namespace embertable::mpi
