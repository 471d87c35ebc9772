#include "engine/device_name.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <tuple>

#include "embertable/errors.h"

namespace embertable::engine {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw ValueError(
      "device must be a name such as '/job:worker/replica:0/task:0/device:TPU:0' or 'TPU:0', got "
      "'" +
      std::string(text) + "'");
}

std::int32_t number(std::string_view digits, std::string_view text) {
  std::int32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) refuse(text);
  return value;
}

/// Reads "TPU:1" or "TPU".
void read_type(std::string_view part, std::string_view text, DeviceName& name) {
  const std::size_t colon = part.find(':');
  name.type = part.substr(0, colon);
  if (name.type.empty()) refuse(text);
  std::transform(name.type.begin(), name.type.end(), name.type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (colon != std::string_view::npos) name.index = number(part.substr(colon + 1), text);
}

void read_part(std::string_view part, std::string_view text, DeviceName& name) {
  const std::size_t colon = part.find(':');
  const std::string_view key = part.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : part.substr(colon + 1);
  if (key == "job") {
    if (value.empty()) refuse(text);
    name.job = value;
  } else if (key == "replica") {
    name.replica = number(value, text);
  } else if (key == "task") {
    name.task = number(value, text);
  } else {
    if (!name.type.empty()) refuse(text);
    read_type(key == "device" ? value : part, text, name);
  }
}

}  // namespace

DeviceName DeviceName::parse(std::string_view text) {
  DeviceName name;
  std::string_view rest = text;
  if (!rest.empty() && rest.front() == '/') rest.remove_prefix(1);
  if (rest.empty()) refuse(text);
  for (;;) {
    const std::size_t slash = rest.find('/');
    read_part(rest.substr(0, slash), text, name);
    if (slash == std::string_view::npos) return name;
    rest.remove_prefix(slash + 1);
  }
}

std::string DeviceName::to_string() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += "/replica:" + std::to_string(*replica);
  if (task) text += "/task:" + std::to_string(*task);
  if (!type.empty()) text += "/device:" + type;
  if (index) text += ":" + std::to_string(*index);
  return text;
}

bool operator<(const DeviceName& a, const DeviceName& b) {
  return std::tie(a.replica, a.task, a.index, a.job) < std::tie(b.replica, b.task, b.index, b.job);
}

}  // namespace embertable::engine
