#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "apps/jobs/spec/job.h"
#include "embertable/errors.h"
#include "embertable/exchange.h"

namespace embertable::jobs {

/// Thrown on the processes that are left when another one ended, hangs or cannot be reached.
class HostLost final : public StateError {
 public:
  using StateError::StateError;
};

/// The processes that train one job together, each of which is a host. Passes messages on to the
/// exchange that connects them, and notes how long this process waits for the others and whether
/// they know of an error. Above it lie the calls that all of them make together.
class Ranks final : public Exchange {
 public:
  /// `stop` gives true to ask all processes to stop; null: never.
  Ranks(std::shared_ptr<Exchange> exchange, std::function<bool()> stop);

  std::int32_t host() const noexcept override { return exchange_->host(); }
  std::int32_t hosts() const noexcept override { return exchange_->hosts(); }
  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override;
  void finish(Channel channel, std::span<ByteSpan> received) override;
  bool is_open(Channel channel) const noexcept override { return exchange_->is_open(channel); }
  GivenUp abort(std::string_view reason) override;

  bool is_first() const noexcept { return host() == 0; }

  /// Returns the seconds that this process has spent in exchanges: other processes came later, or
  /// bytes travelled.
  double waited() const noexcept { return waited_; }

  /// Runs body, in which all processes make the same exchanges, and returns what it returns. If it
  /// throws, the others throw GivenUp, which names this host and the error. Throws HostLost if the
  /// exchange broke. Requires: the body ends with an exchange, after which it does not throw.
  template <class Body>
  auto together(const Body& body) {
    try {
      return body();
    } catch (const std::exception& error) {
      if (tell(error.what())) throw HostLost(lost_);
      throw;
    } catch (...) {
      tell("unknown error");
      throw;
    }
  }

  /// Throws IoError unless this process sees the run directory that host 0 holds open.
  void require_shared(const std::filesystem::path& run) const;

  /// True if this process is asked to stop. All must stop after the same step: they tell each other
  /// in every step, and stop once `agreed_to_stop`.
  bool asked_to_stop() const { return stop_ && stop_(); }
  bool agreed_to_stop() const noexcept { return agreed_to_stop_; }
  void agree_to_stop() noexcept { agreed_to_stop_ = true; }

 private:
  template <class Call>
  auto watched(const Call& call);
  bool tell(std::string_view error) noexcept;

  std::shared_ptr<Exchange> exchange_;
  std::function<bool()> stop_;
  bool agreed_to_stop_ = false;
  double waited_ = 0;
  bool told_ = false;   ///< all processes know of an error of one of them
  std::string failed_;  ///< error of the exchange that no `abort` has followed yet
  std::string lost_;
};

/// Returns what connects this process with the others that a launcher of MPI started; null if it is
/// alone. Throws as make_mpi_exchange.
std::shared_ptr<Exchange> find_others(const MpiOptions& options);

/// Returns the job with as many hosts as processes run it. Throws ValueError naming the keys to set
/// if it does not fit them.
Job job_on(const Job& job, std::int32_t processes);

}  // namespace embertable::jobs
