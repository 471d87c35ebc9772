#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/errors.h"

namespace embertable::jobs {

/// A record, line or token that is not as it must be: "FILE:LINE:COLUMN: RULE, got ...". Others may
/// follow it.
class BrokenRecord : public ValueError {
 public:
  using ValueError::ValueError;
};

/// Bytes of a broken text that a message shows.
constexpr std::size_t kShownBytes = 60;

/// Counts what is left out, up to a number of them.
class LeftOut {
 public:
  explicit LeftOut(std::int64_t most) noexcept : most_(most) {}

  /// In a handler of BrokenRecord: one more, or throws it again if that would be one too many.
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
