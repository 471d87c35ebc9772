#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/errors.h"
#include "embertable/version.h"

namespace embertable {

using ByteSpan = std::span<const std::byte>;

/// Thrown by a call on an exchange after another host has given up: an echo of that host's error.
/// Thrown too where hosts make different calls: `host` is then one of those that found it, maybe
/// this one.
class EMBERTABLE_API GivenUp final : public StateError {
 public:
  GivenUp(std::int32_t host, std::string_view reason)
      : StateError("host " + std::to_string(host) + ": " + std::string(reason)), host_(host) {}

  /// Returns the host that gave up; of several, the first by number.
  std::int32_t host() const noexcept { return host_; }

  /// Returns why, without the host: borrowed from this error.
  std::string_view reason() const noexcept {
    const std::string_view text = what();
    return text.substr(text.find(": ") + 2);
  }

 private:
  std::int32_t host_;
};

/// One of the streams of messages between hosts. A round may be open on each of them at once.
enum class Channel : std::int32_t {
  kStep = 0,       ///< what the running step waits for
  kAhead = 1,      ///< what travels while steps run, such as the ids of the next batch
  kAgreement = 2,  ///< used by Exchange::agree
};
inline constexpr std::int32_t kNumChannels = 3;

/// Says what a round is for, in errors: "rows of step 12".
struct Stage {
  /// Names the messages. Borrowed until the round is finished.
  std::string_view what;

  /// Number of the step, or -1 if it belongs to none.
  std::int64_t step = -1;
};

/// Returns the stage as errors name it.
EMBERTABLE_API std::string to_string(const Stage& stage);

/// Communication between the hosts of an engine: one object per host. The hosts meet in rounds, in
/// each of which every host sends a message to every host. All hosts start and finish the same
/// rounds in the same order, whatever their channels. If they start a round for other stages or on
/// other channels, because their callers make different calls, all throw GivenUp from `finish`, and
/// no message is read as what it is not.
///
/// A host that fails calls `abort`, so that the others do not wait for it, and all hosts can go on.
/// The others notice it in a later round: an operation of several hosts therefore ends with
/// `agree("")`, in which a host can say that it failed after its last message.
///
/// Hosts of one process are waited for without a deadline, since each of them calls or gives up. An
/// exchange between processes has a deadline. If a host has not come by then, the call throws
/// StateError, which names that host and the stage in which it was missed, and so does every later
/// call. Other hosts that wait are told, and throw the same.
///
/// One thread at a time may call. A call that breaks a rule throws StateError or ValueError, and
/// changes nothing.
class EMBERTABLE_API Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange();

  /// Returns the number of this host, 0 <= host < hosts.
  virtual std::int32_t host() const noexcept = 0;
  virtual std::int32_t hosts() const noexcept = 0;

  /// Opens a round: sends send[h] to host h. The messages, not the span, are borrowed until the
  /// round's `finish` returns or throws, or until `abort` returns. May wait for the other hosts to
  /// start the same round. Requires: the channel has no open round; send.size() == hosts().
  virtual void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) = 0;

  /// Closes the channel's round: received[h] becomes what host h sent to this one, 64-byte aligned
  /// and valid until the channel's next `start`. The message of a host to itself is passed without
  /// a copy. If a host gave up before it started this round, all others throw GivenUp; if hosts
  /// started it differently, all hosts do. No host has an open round then. After another error, the
  /// caller owes an `abort`. If all messages of the round are empty, it needs no memory. Requires:
  /// the channel has an open round; received.size() == hosts().
  virtual void finish(Channel channel, std::span<ByteSpan> received) = 0;

  /// Tells whether the channel has an open round. Whoever left one open finds it ended if a host
  /// gave up meanwhile.
  virtual bool is_open(Channel channel) const noexcept = 0;

  /// Says that this host cannot go on with what the hosts do together. Takes part in the round that
  /// the others wait in, or come to next, with the reason in place of messages; open rounds end.
  /// The others throw GivenUp. Returns what they throw: another host may have given up too. From
  /// then on all hosts are in step again. Throws StateError if the others do not come by the
  /// deadline.
  virtual GivenUp abort(std::string_view reason) = 0;

  /// Compares errors: every host passes an error's text, or "" for none. Returns if no host has
  /// one; otherwise all throw StateError naming the first host at fault and its text. If all pass
  /// "", a host that has started this round does not fail in it.
  void agree(std::string_view error, const Stage& stage = {"agreement"});

 private:
  std::vector<ByteSpan> agreement_;  ///< [2 * hosts], what `agree` sends and receives
};

/// How processes that a launcher of MPI started find each other.
struct MpiOptions {
  /// Seconds without a message after which a host counts as missing, > 0.
  double deadline_seconds = 60;

  /// The communicator's number in Fortran, as MPI_Comm_c2f and mpi4py's `py2f` return it. Host h is
  /// its rank h. Not given: MPI_COMM_WORLD.
  std::optional<std::int32_t> communicator;
};

/// Makes the exchange of processes that run MPI; this process is one host. MPI is found at run
/// time: see docs/hosts.md. Collective: all ranks of the communicator call. Throws ValueError for a
/// wrong option, IoError if the MPI library cannot be used, and StateError if there is none, if it
/// is initialised below MPI_THREAD_SERIALIZED, if another exchange of this process uses the
/// communicator, if a rank does not come by the deadline, or if ranks run different versions. A
/// rank that ends after it has come, while MPI duplicates the communicator, is waited for without
/// one.
EMBERTABLE_API std::unique_ptr<Exchange> make_mpi_exchange(const MpiOptions& options = {});

/// What started this process.
struct MpiLauncher {
  /// The variable of the environment that shows it, such as OMPI_COMM_WORLD_SIZE.
  std::string variable;

  /// Number of processes that were started, if the launcher says so.
  std::optional<std::int32_t> processes;
};

/// Returns the launcher (mpirun, srun) that started this process as one of several, if one did.
/// Opens no library.
EMBERTABLE_API std::optional<MpiLauncher> find_mpi_launcher();

}  // namespace embertable
