#include "bench/machine.h"

#include <fmt/format.h>

#include <fstream>
#include <thread>

namespace embertable::bench {

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

}  // namespace embertable::bench
