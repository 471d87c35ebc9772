#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/errors.h"

namespace embertable::jobs {

/// Error of a record, line or token that breaks a rule: "FILE:LINE:COLUMN: RULE, got ...". Reading
/// may continue after it.
class BrokenRecord : public ValueError {
 public:
  using ValueError::ValueError;
};

/// Number of bytes of a broken text that a message shows.
constexpr std::size_t kShownBytes = 60;

/// Counts what is left out, up to a maximum.
class LeftOut {
 public:
  explicit LeftOut(std::int64_t most) noexcept : most_(most) {}

  /// Counts one more, or rethrows if that would be one too many. Called in a handler of
  /// BrokenRecord.
  void count() {
    if (count_ == most_) throw;
    ++count_;
  }
  std::int64_t so_far() const noexcept { return count_; }

 private:
  std::int64_t most_;
  std::int64_t count_ = 0;
};

}  // namespace embertable::jobs
