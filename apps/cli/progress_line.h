#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/byte_watch.h"

namespace embertable::tools {

/// Shows on stderr how far a call of this thread is that reads or writes many bytes. A terminal has
/// a bar with rate and time left, once the call has taken half a second; anything else gets a line
/// every ten seconds.
class ProgressLine {
 public:
  /// `what` is the beginning of the line, such as "verify". `shown`: false shows nothing.
  explicit ProgressLine(std::string what, bool shown = true);

  /// Removes the bar.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  void see(std::int64_t expected, std::int64_t done);

  const std::string what_;
  const bool terminal_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;  ///< when the line is due
  std::int64_t expected_ = 0, done_ = 0;
  bool drawn_ = false;
  ByteWatch watch_;
};

/// Returns the line for bytes that are done of those that are expected, after these seconds:
/// "verify  512 MiB of 2.0 GiB  256 MiB/s  0:06 left", with a bar in front of the sizes if `bar`.
std::string progress_text(const std::string& what, std::int64_t done, std::int64_t expected,
                          double seconds, bool bar);

/// Returns a bar of 24 characters, of which this share is filled.
std::string progress_bar(double share);

/// Returns minutes and seconds, "1:05".
std::string minutes(double seconds);

}  // namespace embertable::tools
