#include "kernels/stage_clock.h"

#include <atomic>
#include <cstddef>

namespace embertable {
namespace {

using Duration = std::chrono::steady_clock::duration;

std::atomic<bool> timed = false;
std::atomic<Duration::rep> spent[static_cast<std::size_t>(StepStage::kSumAndUpdate) + 1];

std::atomic<Duration::rep>& spent_on(StepStage stage) {
  return spent[static_cast<std::size_t>(stage)];
}

}  // namespace

void time_stages(bool on) noexcept { timed.store(on, std::memory_order_relaxed); }
bool stages_are_timed() noexcept { return timed.load(std::memory_order_relaxed); }

double take_stage_seconds(StepStage stage) noexcept {
  const Duration time(spent_on(stage).exchange(0, std::memory_order_relaxed));
  return std::chrono::duration<double>(time).count();
}

void add_stage_time(StepStage stage, Duration time) noexcept {
  spent_on(stage).fetch_add(time.count(), std::memory_order_relaxed);
}

}  // namespace embertable
