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
constexpr std::string_view kNotices[] = {
    "", "\nembertable: stops after this step; a second signal stops at once\n",
    "\nembertable: stops after this step and saves; a second signal stops at once\n"};

// The only state that the signal handler touches.
std::atomic<bool> requested_flag = false;             // NOLINT: there is one set of signals
std::atomic<int> first_signal = 0;                    // NOLINT
std::atomic<Notice> notice_of_first = Notice::kNone;  // NOLINT
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<Notice>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  const int error = errno;
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal)) ::_exit(kShellOffset + signal);
  requested_flag = true;
  // The notice may get lost: nothing depends on it.
  const std::string_view text = kNotices[static_cast<int>(notice_of_first.load())];
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  errno = error;
}

}  // namespace

void Interrupt::arm(Notice notice) {
  armed_ = true;
  notice_of_first = notice;
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
