#include "exchange/mpi/process.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "embertable/errors.h"
#include "embertable/version.h"
#include "exchange/mpi/idling.h"
#include "exchange/mpi/late_hosts.h"
#include "exchange/mpi/loader.h"
#include "exchange/mpi/pipe_signals.h"

namespace embertable::mpi {
namespace {

std::atomic<bool> may_finalize = true;

void finalize_at_exit() {
  const PipeSignalsHeld held;
  if (may_finalize && !library().finalized()) library().finalize();
}

void initialize(Library& mpi) {
  static std::mutex initializing;
  const std::lock_guard lock(initializing);
  if (mpi.finalized()) throw StateError("mpi exchange: MPI has been finalized in this process");
  if (!mpi.initialized()) {
    mpi.initialize();
    std::atexit(finalize_at_exit);
  }
  if (!mpi.serializes_threads()) {
    throw StateError("mpi exchange: " + mpi.version() +
                     " is initialised below the level MPI_THREAD_SERIALIZED; initialise it with "
                     "MPI_Init_thread and this level");
  }
}

struct InUse {
  std::mutex mutex;
  std::set<std::uintptr_t> communicators;
};
InUse& in_use() {
  static auto* const one = new InUse;  // an exchange may be destroyed when the process ends
  return *one;
}

/// A launcher of one MPI starts processes that each believe to be alone in another.
void check_world(const Library& mpi, const Communicator& world) {
  const std::optional<MpiLauncher> launcher = find_mpi_launcher();
  if (!launcher || !launcher->processes || *launcher->processes == world.size()) return;
  throw StateError("mpi exchange: the launcher started " + std::to_string(*launcher->processes) +
                   " processes (" + launcher->variable + "), but " + mpi.version() + " knows of " +
                   std::to_string(world.size()) +
                   "; use the launcher of the same MPI, or name its library in "
                   "EMBERTABLE_MPI_LIBRARY");
}

/// What ranks tell each other first, on the caller's communicator.
struct Greeting {
  std::array<char, 24> version{};
  std::int32_t numerics = kNumericsVersion;
};
constexpr std::int32_t kGreetingTag = 32101;  ///< MPI allows at least 32767

std::string shown(const Greeting& greeting) {
  return std::string(greeting.version.data()) + " (numerics " + std::to_string(greeting.numerics) +
         ")";
}

/// Memory of greetings. It is leaked if one has not come.
struct Greetings {
  explicit Greetings(std::size_t ranks) : theirs(ranks) {}
  Greeting mine;
  std::vector<Greeting> theirs;
};

}  // namespace

Parent::Parent(std::optional<std::int32_t> fortran) : library_(mpi::library()) {
  initialize(library_);
  communicator_ = fortran ? library_.from_fortran(*fortran) : library_.world();
  if (!communicator_)
    throw ValueError("mpi exchange: " + std::to_string(*fortran) + " is no communicator");
  if (!fortran) check_world(library_, *communicator_);
  const std::lock_guard lock(in_use().mutex);
  if (!in_use().communicators.insert(communicator_->identity()).second)
    throw StateError("mpi exchange: another exchange of this process uses this communicator");
}

Parent::~Parent() {
  const std::lock_guard lock(in_use().mutex);
  in_use().communicators.erase(communicator_->identity());
}

void keep_from_finalizing() noexcept { may_finalize = false; }

void greet(Communicator& communicator, const char* version, std::chrono::nanoseconds deadline) {
  const std::int32_t me = communicator.rank();
  const std::int32_t ranks = communicator.size();
  auto greetings = std::make_unique<Greetings>(static_cast<std::size_t>(ranks));
  Greeting& own = greetings->mine;
  std::snprintf(own.version.data(), own.version.size(), "%s", version);
  communicator.reserve(2 * static_cast<std::size_t>(ranks));
  const std::span<const Greeting> mine(&own, 1);
  struct Purpose {
    std::int32_t peer;
    bool receives;
  };
  std::vector<Purpose> purpose(2 * static_cast<std::size_t>(ranks));  // by request
  std::vector<bool> late(static_cast<std::size_t>(ranks), true);
  late[me] = false;
  std::int32_t open = 0;
  for (std::int32_t i = 1; i < ranks; ++i) {
    const std::int32_t peer = (me + i) % ranks;
    const std::span<Greeting> theirs(&greetings->theirs[peer], 1);
    purpose[communicator.receive(std::as_writable_bytes(theirs), peer, kGreetingTag)] = {peer,
                                                                                         true};
    purpose[communicator.send(std::as_bytes(mine), peer, kGreetingTag)] = {peer, false};
    open += 2;
  }
  const auto fail = [&](const std::string& text) {
    [[maybe_unused]] auto* const kept = greetings.release();
    keep_from_finalizing();
    throw StateError(text);
  };
  const std::string stage = "the opening of the exchange";
  std::vector<Ended> ended;
  for (Idling idling; open > 0;) {
    ended.clear();
    communicator.test(ended);
    for (const Ended& each : ended) {
      const auto [peer, receives] = purpose[each.request];
      if (!each.error.empty()) fail(is_lost(peer, each.error, me, stage));
      if (receives) late[peer] = false;
      --open;
    }
    if (!ended.empty()) idling = {};
    if (idling.time() > deadline) fail(not_come(late, deadline, me, stage));
    if (open > 0) idling.pause();
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    if (rank == me) continue;
    const std::string theirs = shown(greetings->theirs[rank]);
    if (theirs != shown(own)) {
      throw StateError("mpi exchange: rank " + std::to_string(rank) + " runs Embertable " + theirs +
                       ", rank " + std::to_string(me) + " " + shown(own));
    }
  }
}

}  // namespace embertable::mpi
