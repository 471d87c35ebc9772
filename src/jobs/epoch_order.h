#pragma once

#include <cstdint>
#include <span>

namespace embertable::jobs {

/// Shuffles the samples of one epoch. The order depends on their number, the seed and the epoch alone: Fisher and Yates's
/// exchanges, by counter-based numbers. (A list, since a step reads it once per sample: `Permutation` needs none but takes
/// ten times as long.)
void shuffle_epoch(std::span<std::int32_t> samples, std::uint64_t seed, std::int64_t epoch);

}  // namespace embertable::jobs
