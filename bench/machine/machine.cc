#include "bench/machine/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <thread>

#include "base/memory_limits.h"

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
