#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "apps/selftest/selftest.h"
#include "base/hash.h"

namespace embertable::selftest {

/// Failures of one line that are kept; more of them say nothing new.
inline constexpr std::size_t kMostFailures = 8;

/// Compares numbers on behalf of a line.
class Comparison {
 public:
  Comparison(Line& line, std::string where, double rtol, double atol)
      : line_(line), where_(std::move(where)), rtol_(rtol), atol_(atol) {}

  /// `what` of `place` must be near, or NaN where `want` is.
  void near(std::string_view what, std::size_t place, float got, double want) {
    const double off = std::abs(got - want) / (atol_ + rtol_ * std::abs(want));
    if (std::isfinite(off)) line_.worst = std::max(line_.worst, off);
    const bool both_nan = std::isnan(got) && std::isnan(want);
    if (!(off <= 1) && !both_nan)
      fail(fmt::format("{}[{}] is {}, must be {}", what, place, got, want));
  }

  /// `what` of `place` must have these bits, or be a NaN like them.
  void bits(std::string_view what, std::size_t place, float got, std::uint32_t want) {
    const auto has = std::bit_cast<std::uint32_t>(got);
    const bool both_nan = std::isnan(got) && std::isnan(std::bit_cast<float>(want));
    if (has != want && !both_nan)
      fail(fmt::format("{}[{}] has the bits {:08x}, must have {:08x}", what, place, has, want));
  }

  void fail(const std::string& how) {
    if (line_.failures.size() < kMostFailures)
      line_.failures.push_back(fmt::format("{}, {}: {}", line_.name, where_, how));
  }

 private:
  Line& line_;
  std::string where_;
  double rtol_, atol_;
};

/// Keeps the digest of a level in the line; all must be equal.
inline void end_level(Line& line, std::string_view level, const Hasher& hasher) {
  line.digests.push_back(hasher.hex());
  if (line.digests.back() != line.digests.front())
    line.failures.push_back(fmt::format("{}, digest: {} gives {}, the level before it {}",
                                        line.name, level, line.digests.back(),
                                        line.digests.front()));
}

}  // namespace embertable::selftest
