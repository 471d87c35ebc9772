#pragma once

namespace embertable {

/// Lets the caller of a long call, such as a save, end it. The call asks between two blocks of a
/// file, where nothing is half changed.
class Interruption {
 public:
  /// While this lives, calls of this thread ask by calling `check`, which throws to end them. Null:
  /// they do not ask.
  explicit Interruption(void (*check)()) noexcept;
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Calls the check of this thread, if there is one.
  static void ask();

 private:
  void (*const outer_)();
};

}  // namespace embertable
