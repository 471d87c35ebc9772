#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "base/fork_guard.h"
#include "embertable/executor.h"
#include "engine/host.h"

namespace embertable::engine {

/// The hosts of this process: host 0 works on the calling thread, the others on threads of their
/// own.
class HostTeam {
 public:
  explicit HostTeam(std::vector<std::unique_ptr<Host>> hosts);
  ~HostTeam();
  HostTeam(const HostTeam&) = delete;
  HostTeam& operator=(const HostTeam&) = delete;

  /// Runs body on every host at once. Throws the error of the first host that has one of its own:
  /// the others were told, and what they throw is an echo of it. The hosts can then run another.
  void run(FunctionRef<void(Host&)> body);

  Host& host(std::int32_t index) { return *hosts_[index]; }
  const Host& host(std::int32_t index) const { return *hosts_[index]; }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(hosts_.size()); }

 private:
  void work(std::int32_t index);
  void run_one(std::int32_t index);
  void fail(std::int32_t index, const char* reason) noexcept;
  std::exception_ptr take_cause() noexcept;
  void end_threads() noexcept;

  const ForkGuard home_;
  std::vector<std::unique_ptr<Host>> hosts_;
  struct Failure {
    std::exception_ptr error;
    bool is_echo = false;  ///< it repeats another host's error
  };
  std::vector<Failure> failures_;  ///< by host, while a body runs
  const FunctionRef<void(Host&)>* body_ = nullptr;
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<std::int32_t> running_ = 0;
  std::atomic<bool> closing_ = false;
  std::unique_ptr<std::vector<std::thread>> threads_ = std::make_unique<std::vector<std::thread>>();
};

}  // namespace embertable::engine
