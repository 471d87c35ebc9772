#include "jobs/epoch_order.h"

#include <utility>

#include "base/random.h"

namespace embertable::jobs {

void shuffle_epoch(std::span<std::int32_t> samples, std::uint64_t seed, std::int64_t epoch) {
  const RandomRow random(stream_of(seed, "epoch order"), static_cast<std::uint64_t>(epoch));
  for (std::size_t left = samples.size(); left > 1; --left) {
    const std::uint64_t chosen = uniform_below(random.bits(left), left);
    std::swap(samples[left - 1], samples[static_cast<std::size_t>(chosen)]);
  }
}

}  // namespace embertable::jobs
