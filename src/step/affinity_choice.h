#pragma once

#include <array>

namespace embertable {

/// Finds out by the clock whether the workers of training steps had better keep to tables of their
/// own, or take the items of all tables as they come. That depends on how far the workers' caches
/// are from each other, which no program sees on a virtual machine, and which changes as its
/// processors are moved. So the other way is tried for a few steps now and then. No result shows
/// the choice.
class AffinityChoice {
 public:
  /// Whether the workers of the next step keep to tables of their own.
  bool keeps_tables() const noexcept { return keeps_; }

  /// Takes what a step has taken: whether its workers kept to their tables, the floats that its
  /// lookups move, and the seconds of the regions that look up and update.
  void took(bool kept, double floats, double seconds) noexcept;

 private:
  enum class Phase { kBetween, kCurrent, kOther };

  /// Least steps, and seconds of them, between two comparisons.
  static constexpr int kBetweenSteps = 240;
  static constexpr double kBetweenSeconds = 0.25;
  /// Each step of the current way is compared with the twelfth after it, which goes the other way.
  /// So batches of two, three or four kinds that take turns are compared with their like. The first
  /// steps of the other way find the caches as the current one has left them.
  static constexpr int kCompared = 7, kUncounted = 5;
  /// Steps before the first comparison.
  static constexpr int kWarmUp = 4;

  void enter(Phase phase) noexcept;

  Phase phase_ = Phase::kBetween;
  bool keeps_ = true;
  int steps_ = kBetweenSteps - kWarmUp;     ///< steps of the phase
  double seconds_ = kBetweenSeconds;        ///< seconds of its steps
  std::array<double, kCompared> times_{};   ///< seconds a float, the current way
  std::array<double, kCompared> ratios_{};  ///< times the other way by those of the current one
};

}  // namespace embertable
