#pragma once

#include <cstdint>

namespace embertable {

/// The highest number of a training step, at which training ends: far beyond what anybody takes,
/// and sums with it do not overflow.
inline constexpr std::int64_t kMostStep = std::int64_t{1} << 62;

}  // namespace embertable
