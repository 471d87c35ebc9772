#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace embertable {

/// For tests: makes one allocation of this process fail. A test that includes this links
/// failing_allocation.cc, which replaces operator new and the library's mmap.
class FailingAllocation {
 public:
  /// Allocation number `nth` fails once, counted from 0 over all calls and their threads: operator
  /// new throws bad_alloc, or mmap has no memory. Allocations of fewer bytes do not count.
  explicit FailingAllocation(std::int64_t nth, std::size_t fewest_bytes = 0)
      : left_(nth), fewest_bytes_(fewest_bytes) {}

  /// Runs a call whose allocations count. No other thread may do so at the same time.
  template <class Call>
  void during(Call call) {
    struct Counting {
      std::int64_t& left;
      explicit Counting(std::int64_t& from) : left(from) { counting_ = from; }
      ~Counting() { left = std::max<std::int64_t>(counting_.exchange(-1), -1); }
    };
    counted_bytes_ = fewest_bytes_;
    const Counting counting(left_);
    call();
  }

  /// True once the allocation has failed.
  bool hit() const { return left_ < 0; }

  /// Whether the allocation that is made now has to fail.
  static bool fails_now(std::size_t bytes) {
    return counting_ >= 0 && bytes >= counted_bytes_ && counting_.fetch_sub(1) == 0;
  }

 private:
  inline static std::atomic<std::int64_t> counting_ = -1;
  inline static std::atomic<std::size_t> counted_bytes_ = 0;
  std::int64_t left_;
  std::size_t fewest_bytes_;
};

}  // namespace embertable
