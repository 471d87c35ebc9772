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
  /// Steps of one way whose fastest is compared, and those before them, which find the caches as
  /// the other way has left them.
  static constexpr int kCompared = 4, kUncounted = 2;
  /// Steps between two trials, and before the first one.
  static constexpr int kBetween = 128, kFirst = 8;

  bool keeps_ = true;
  bool in_trial_ = false;            ///< the way is the one that was slower
  int steps_left_ = kFirst;          ///< until the way changes, or might
  std::array<double, 2> fastest_{};  ///< seconds a float, by whether tables are kept
};

}  // namespace embertable
