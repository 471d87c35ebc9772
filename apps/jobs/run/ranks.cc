#include "apps/jobs/run/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "checkpoint/run_directory.h"
#include "embertable/errors.h"
#include "exchange/all_gather.h"

namespace embertable::jobs {

Ranks::Ranks(std::shared_ptr<Exchange> exchange, std::function<bool()> stop)
    : exchange_(std::move(exchange)), stop_(std::move(stop)) {}

template <class Call>
auto Ranks::watched(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  const auto count = [&] {
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  try {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      count();
    } else {
      auto result = call();
      count();
      return result;
    }
  } catch (const GivenUp&) {
    told_ = true;
    throw;
  } catch (const StateError& error) {
    if (lost_.empty()) lost_ = error.what();
    throw;
  } catch (const std::exception& error) {
    failed_ = error.what();
    throw;
  }
}

void Ranks::start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) {
  watched([&] { exchange_->start(channel, stage, send); });
}

void Ranks::finish(Channel channel, std::span<ByteSpan> received) {
  watched([&] { exchange_->finish(channel, received); });
}

GivenUp Ranks::abort(std::string_view reason) {
  told_ = true;
  const std::string failed = std::exchange(failed_, "");
  try {
    return watched([&] { return exchange_->abort(reason); });
  } catch (...) {  // an exchange whose errors have other classes broke if it cannot even give up
    if (lost_.empty()) lost_ = failed;
    throw;
  }
}

/// Makes an error of this process one of all, unless they know it. Returns true if the error is
/// that the exchange broke.
bool Ranks::tell(std::string_view error) noexcept {
  if (!lost_.empty() || told_) return !lost_.empty();
  const bool failed = !failed_.empty();
  try {
    abort(error);
    return false;
  } catch (...) {  // the caller's error says more than one about telling the others
    return failed;
  }
}

void Ranks::require_shared(const std::filesystem::path& run) const {
  const bool is_there = checkpoint::seen_in_time(
      [&] { return checkpoint::local_files().stat(run / checkpoint::kLockName).has_value(); });
  if (is_there) return;
  throw IoError(fmt::format(
      "'{}': cannot see the run directory that host 0 has opened there: all hosts must share the "
      "file system of a run",
      run.string()));
}

std::shared_ptr<Exchange> find_others(const MpiOptions& options) {
  const std::optional<MpiLauncher> launcher = find_mpi_launcher();
  if (!launcher || launcher->processes == 1) return nullptr;
  std::shared_ptr<Exchange> exchange = make_mpi_exchange(options);
  return exchange->hosts() > 1 ? exchange : nullptr;
}

Job job_on(const Job& job, std::int32_t processes) {
  const StrategySpec& strategy = job.strategy;
  if (strategy.hosts != 1 && strategy.hosts != processes) {
    throw ValueError(
        fmt::format("strategy.hosts must be 1 or the {} processes that run the job, "
                    "got {}",
                    processes, strategy.hosts));
  }
  if (strategy.replicas % processes != 0) {
    const auto multiple = [](std::int64_t number, std::int64_t of) {
      return (number + of - 1) / of * of;
    };
    const std::int64_t replicas = multiple(strategy.replicas, processes);
    std::string keys = fmt::format("strategy.replicas = {}", replicas);
    if (job.schedule.batch % replicas != 0)
      keys += fmt::format(" and schedule.batch = {}", multiple(job.schedule.batch, replicas));
    throw ValueError(
        fmt::format("strategy.replicas must be a multiple of the {} processes that run the job and "
                    "divide schedule.batch ({}), got {}; set {}",
                    processes, job.schedule.batch, strategy.replicas, keys));
  }
  Job on = job;
  on.strategy.hosts = processes;
  return on;
}

}  // namespace embertable::jobs
