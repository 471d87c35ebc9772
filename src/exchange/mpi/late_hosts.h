#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/mpi/library.h"

namespace embertable::mpi {

/// Returns the error that names the ranks which are late, and the stage in which `me` waited.
std::string not_come(const std::vector<bool>& late, std::chrono::nanoseconds deadline,
                     std::int32_t me, std::string_view stage);

/// Returns the error that names a rank of which MPI reports in `error` that it is lost.
std::string is_lost(std::int32_t rank, std::string_view error, std::int32_t me,
                    std::string_view stage);

/// What a process knows of the reason for which it stopped waiting.
enum class Knowledge : std::int64_t {
  kSeen = 0,     ///< MPI reported a loss, or a message was wrong
  kGuessed = 1,  ///< the deadline has passed, or another process complained
};

/// Where a process stopped waiting, and why.
struct Complaint {
  Knowledge knowledge = Knowledge::kSeen;
  std::int64_t epoch = 0;  ///< how often hosts had given up before
  std::int64_t round = 0;
  std::array<char, 1000> text{};
};

/// Tells processes outside the rounds that one of them waits no longer, so that none does. If a
/// process hangs in the middle of a round, others have passed it and miss hosts that themselves
/// wait in it. The complaint from the first round therefore names the process that hangs. One that
/// has seen the reason goes before all that guess: it comes before the deadline, when hosts that
/// have not come may only be slow.
class Complaints {
 public:
  /// The communicator is used for nothing else.
  explicit Complaints(std::unique_ptr<Communicator> communicator);

  /// Receives what others tell. Returns whether one has complained.
  bool check();

  /// Returns the rank that `check` has found lost, if MPI reports such ranks.
  const std::optional<Found>& lost() const noexcept { return lost_; }

  /// Complains to all, and for `wait` listens to what others say. Returns the text of the complaint
  /// that counts: one that was seen, from the first round, and of these, of the first host.
  std::string settle(Knowledge knowledge, std::int64_t epoch, std::int64_t round,
                     std::string_view text, std::chrono::nanoseconds wait);

  void free() noexcept { communicator_->free(); }

 private:
  void test();

  /// Returns whether the complaint `one` of the host `by` counts more than `other` of `other_by`.
  static bool counts_more(const Complaint& one, std::int32_t by, const Complaint& other,
                          std::int32_t other_by) noexcept;

  std::unique_ptr<Communicator> communicator_;
  std::int32_t host_;
  Complaint mine_, incoming_, first_;
  std::int32_t first_host_ = -1;  ///< made the complaint `first_`; -1: there is none
  std::int32_t receive_ = -1;     ///< the open request; -1: there is none
  std::int32_t from_ = -1;        ///< sent the message that it receives
  std::optional<Found> lost_;
  std::vector<Ended> ended_;
};

}  // namespace embertable::mpi
