#include "apps/cli/numbers.h"

#include <fmt/format.h>

namespace embertable::tools {

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return size < 9.95 ? fmt::format("{:.1f} {}", size, unit) : fmt::format("{:.0f} {}", size, unit);
}

std::string counted(std::int64_t number, const std::string& what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

}  // namespace embertable::tools
