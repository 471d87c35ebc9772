#include "bench/machine/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "base/memory_limits.h"
#include "bench/machine/timing.h"

namespace embertable::bench {
namespace {

/// Source: proc(5), /proc/stat: user nice system idle iowait irq softirq steal.
CpuSeconds machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double ticks[8] = {};
  file >> cpu;
  for (double& tick : ticks) file >> tick;
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) / per_second,
          (ticks[3] + ticks[4]) / per_second};
}

double seconds_of_process() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::string machine_name() {
  std::string name = "unknown processor", line;
  std::ifstream file("/proc/cpuinfo");
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  return fmt::format("{}, {} threads", name, std::thread::hardware_concurrency());
}

std::size_t available_memory_bytes() {
  const std::int64_t left = memory_limits().left();
  return left == std::numeric_limits<std::int64_t>::max() ? 0 : static_cast<std::size_t>(left);
}

void ChangedLine::measure() {
  constexpr int kBlocks = 11, kTrips = 100, kMostLooks = 1'000'000;
  struct alignas(2 * 64) {
    std::atomic<int> message = 0;  // odd ones are answered by the next; -1 is the last
  } alone;
  std::atomic<int>& message = alone.message;
  std::thread other([&message] {
    for (int seen = 0; seen >= 0; seen = message.load(std::memory_order_acquire))
      if (int sent = seen; seen % 2 == 1)  // exchanged, so that a last one is never lost
        message.compare_exchange_strong(sent, seen + 1, std::memory_order_acq_rel);
  });
  int sent = 1;
  const auto is_answered = [&] {
    message.store(sent, std::memory_order_release);
    for (int look = 0; look < kMostLooks; ++look) {
      if (message.load(std::memory_order_acquire) == sent) continue;
      sent += 2;
      return true;
    }
    return false;
  };
  bool answered = is_answered();  // not counted: the thread has to start
  std::vector<double> blocks;     // an interrupt does not change their median
  for (int block = 0; block < kBlocks; ++block)
    blocks.push_back(seconds_of([&] {
      for (int trip = 0; trip < kTrips && answered; ++trip) answered = is_answered();
    }));
  message.store(-1, std::memory_order_release);
  other.join();
  if (!answered) return;
  const double ns = median(blocks) * 1e9 / (2 * kTrips);
  least = least == 0 ? ns : std::min(least, ns);
  most = std::max(most, ns);
}

std::string ChangedLine::line() const {
  if (most == 0) return "";
  return fmt::format("  a line that another core has changed comes in {:.0f} to {:.0f} ns\n", least,
                     most);
}

OtherLoad::OtherLoad() : machine_(machine_seconds()), own_(seconds_of_process()) {}

double OtherLoad::own_seconds() const { return seconds_of_process() - own_; }

double OtherLoad::share(double companions) const {
  const CpuSeconds now = machine_seconds();
  const double busy = now.busy - machine_.busy;
  const double total = busy + now.idle - machine_.idle;
  if (total <= 0) return -1;
  return std::clamp((busy - own_seconds() - companions) / total, 0.0, 1.0);
}

std::string other_load_line(double share) {
  if (share <= kMostOtherLoad) return "";
  return fmt::format("  other processes took {:.0f} % of the machine meanwhile\n", share * 100);
}

}  // namespace embertable::bench
