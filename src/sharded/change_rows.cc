#include <algorithm>
#include <utility>

#include "base/float_environment.h"
#include "base/rows.h"
#include "sharded/row_places.h"

namespace embertable {
namespace {

constexpr std::int64_t kChangeChunk = 2048;

/// Less is done by one worker: starting others takes longer.
constexpr std::int64_t kParallelBytes = 256 << 10;

constexpr std::uint32_t kChangeBuckets = 128;

/// Everything in the caller's order.
void change_in_order(const ChangeRows& args, FunctionRef<void(const ChangePiece&)> apply) {
  const FloatEnvironment environment;
  std::uint64_t number[kChangeChunk];
  for (std::int64_t first = 0; first < args.indices.count; first += kChangeChunk) {
    const std::int64_t count = std::min(kChangeChunk, args.indices.count - first);
    args.addresses.numbers(args.indices, first, count, number);
    apply({.number = number, .first = first, .count = count});
  }
}

/// Indices by bucket of their rows, in the caller's order within a bucket: a counting sort whose
/// order does not depend on who does which slice.
class Buckets {
 public:
  explicit Buckets(const ChangeRows& args)
      : args_(args),
        slices_(args.executor->workers()),
        number_(args.scratch->take<std::uint64_t>(args.indices.count)),
        from_(args.scratch->take<std::uint64_t>(args.indices.count)),
        cursor_(args.scratch->take_zeros<std::int64_t>(slices_ * kCursors)) {
    each_slice([&](std::int64_t i, std::int64_t* cursor) { ++cursor[bucket(i)]; });
    std::int64_t sum = 0;
    for (std::uint32_t b = 0; b < kChangeBuckets; ++b) {
      begin_[b] = sum;
      for (std::int64_t s = 0; s < slices_; ++s) sum += std::exchange(cursors(s)[b], sum);
    }
    begin_[kChangeBuckets] = sum;
    scatter();
  }

  ChangePiece piece(std::int64_t b) const {
    const auto at = static_cast<std::size_t>(b);
    return {.number = number_.data() + begin_[at],
            .from = from_.data() + begin_[at],
            .count = begin_[at + 1] - begin_[at]};
  }

 private:
  /// Cursors of two slices share no cache line.
  static constexpr std::int64_t kCursors = kChangeBuckets + 8;

  std::int64_t* cursors(std::int64_t slice) const { return cursor_.data() + slice * kCursors; }
  std::uint32_t bucket(std::int64_t i) const {
    return bucket_of(static_cast<std::uint64_t>(args_.indices[i]), kChangeBuckets);
  }
  std::int64_t slice_begin(std::int64_t slice) const {
    return args_.indices.count / slices_ * slice + std::min(args_.indices.count % slices_, slice);
  }

  template <class Each>
  void each_slice(const Each& each) const {
    args_.executor->run(slices_, [&](const WorkItem& item) {
      const std::int64_t end = slice_begin(item.index + 1);
      for (std::int64_t i = slice_begin(item.index); i < end; ++i) each(i, cursors(item.index));
    });
  }

  void scatter() const {
    args_.executor->run(slices_, [&](const WorkItem& item) {
      std::uint64_t number[kChangeChunk];
      std::int64_t* cursor = cursors(item.index);
      const std::int64_t end = slice_begin(item.index + 1);
      for (std::int64_t first = slice_begin(item.index); first < end; first += kChangeChunk) {
        const std::int64_t count = std::min(kChangeChunk, end - first);
        args_.addresses.numbers(args_.indices, first, count, number);
        for (std::int64_t k = 0; k < count; ++k) {
          const auto at = static_cast<std::size_t>(cursor[bucket(first + k)]++);
          number_[at] = number[k];
          from_[at] = static_cast<std::uint64_t>(first + k);
        }
      }
    });
  }

  const ChangeRows& args_;
  std::int64_t slices_;
  std::span<std::uint64_t> number_, from_;
  std::span<std::int64_t> cursor_;
  std::int64_t begin_[kChangeBuckets + 1] = {};
};

}  // namespace

void change_rows(const ChangeRows& args, FunctionRef<void(const ChangePiece&)> apply) {
  if (args.row_bytes == 0 || args.indices.count == 0) return;
  const bool parallel = args.executor != nullptr && args.executor->workers() > 1 &&
                        args.indices.count * args.row_bytes >= kParallelBytes;
  if (!parallel) return change_in_order(args, apply);
  args.scratch->reset();
  const Buckets buckets(args);
  args.executor->run(kChangeBuckets, [&](const WorkItem& item) {
    const FloatEnvironment environment;
    apply(buckets.piece(item.index));
  });
}

}  // namespace embertable
