#pragma once

#include <string>
#include <utility>

namespace embertable::jobs {

/// A change of a job: a dotted key, and a TOML value or plain text, as in "schedule.epochs=3".
struct Change {
  Change(const char* change) : Change(std::string(change)) {}            // NOLINT: implicit
  Change(std::string change) : text(std::move(change)), source(text) {}  // NOLINT: implicit
  Change(std::string change, std::string from) : text(std::move(change)), source(std::move(from)) {}

  std::string text;
  std::string source;  ///< begins errors about it, as "--set schedule.epochs=3"; default: `text`
};

}  // namespace embertable::jobs
