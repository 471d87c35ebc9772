#include "apps/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "apps/cli/numbers.h"

namespace embertable::tools {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(500);
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kLine = std::chrono::seconds(10);
constexpr double kBarWidth = 24;

}  // namespace

ProgressLine::ProgressLine(std::string what, bool shown)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) != 0),
      next_(begin_ + (terminal_ ? Clock::duration(kPatience) : Clock::duration(kLine))),
      watch_([this, shown](std::int64_t expected, std::int64_t done) {
        if (shown) see(expected, done);
      }) {}

ProgressLine::~ProgressLine() {
  if (drawn_) std::fputs(fmt::format("\r{:100}\r", "").c_str(), stderr);
}

void ProgressLine::see(std::int64_t expected, std::int64_t done) {
  expected_ += expected;
  done_ += done;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLine));
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::string text = progress_text(what_, done_, expected_, seconds, terminal_);
  // A terminal that is gone must not end what is shown.
  std::fputs((terminal_ ? fmt::format("\r{:<99}", text) : text + "\n").c_str(), stderr);
  drawn_ = terminal_;
  std::fflush(stderr);
}

std::string progress_text(const std::string& what, std::int64_t done, std::int64_t expected,
                          double seconds, bool bar) {
  const double rate = static_cast<double>(done) / std::max(seconds, 1e-9);
  std::string text = what + "  ";
  const bool known = expected > 0;
  const double share =
      known ? std::min(1.0, static_cast<double>(done) / static_cast<double>(expected)) : 0;
  if (known && bar) text += "[" + progress_bar(share) + "] ";
  text += size_text(done);
  if (known) text += " of " + size_text(std::max(expected, done));
  text += fmt::format("  {}/s", size_text(static_cast<std::int64_t>(rate)));
  if (known && share > 0) text += fmt::format("  {} left", minutes(seconds * (1 - share) / share));
  return text;
}

std::string progress_bar(double share) {
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  return std::string(filled, '=') + std::string(static_cast<std::size_t>(kBarWidth) - filled, ' ');
}

std::string minutes(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace embertable::tools
