#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace embertable::engine {

/// A device as its name describes it; what the name leaves out is unset. Source: TF device_spec.py,
/// DeviceSpecV2.from_string.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<std::int32_t> replica;
  std::optional<std::int32_t> task;
  std::string type;  ///< upper case, "TPU"
  std::optional<std::int32_t> index;

  /// Parses "/job:worker/replica:0/task:0/device:TPU:1", or some of its parts, "TPU:1". Throws
  /// ValueError naming the text if it is not such a name.
  static DeviceName parse(std::string_view text);

  bool is_accelerator() const { return type == "TPU"; }
  std::string to_string() const;

  /// Orders by job, replica, task, index; unset ones first.
  friend bool operator<(const DeviceName& a, const DeviceName& b);
};

}  // namespace embertable::engine
