#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

/// Returns where the key of a KEY=VALUE ends, whose parts may stand within quotes as those of TOML:
/// the place of the equals sign, or the text's size if there is none.
std::size_t end_of_key(std::string_view text);

}  // namespace embertable::jobs
