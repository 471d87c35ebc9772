#include "apps/cli/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

namespace embertable::tools {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
constexpr int kShellOffset = 128;
constexpr std::string_view kNotice =
    "\nembertable: stops after this step and saves; a second signal stops at once\n";

// The only state that the signal handler touches.
std::atomic<bool> requested_flag = false;  // NOLINT: there is one set of signals
std::atomic<int> first_signal = 0;         // NOLINT
std::atomic<bool> prints_notice = true;    // NOLINT
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  const int error = errno;
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal)) ::_exit(kShellOffset + signal);
  requested_flag = true;
  // The notice may get lost: nothing depends on it.
  if (prints_notice) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kNotice.data(), kNotice.size());
  }
  errno = error;
}

}  // namespace

void Interrupt::arm(bool says_so) {
  armed_ = true;
  prints_notice = says_so;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

Interrupt::~Interrupt() {
  if (!armed_) return;
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool Interrupt::requested() const noexcept { return requested_flag; }

const char* Interrupt::signal_name() const noexcept {
  return first_signal == SIGINT ? "SIGINT" : "SIGTERM";
}

int Interrupt::exit_code() const noexcept {
  return kShellOffset + (first_signal == SIGINT ? SIGINT : SIGTERM);
}

}  // namespace embertable::tools
