#include <algorithm>
#include <bit>
#include <cstring>

#include "base/float_environment.h"
#include "base/rows.h"
#include "sharded/row_places.h"

namespace embertable {
namespace {

using Apply = FunctionRef<void(const ChangePiece&)>;

/// Entries that are made at once: they stay in the first cache beside the rows.
constexpr std::int64_t kChangeChunk = 1024;

/// Entries of the next piece that are shown with each.
constexpr std::int64_t kChangeSoon = 16;

/// Less is done by one worker: starting others takes longer.
constexpr std::int64_t kParallelBytes = 256 << 10;

/// Parts have a byte for their number, and one number is nobody's.
constexpr std::int32_t kMostParts = 255;

/// Everything in the caller's order.
void change_in_order(const ChangeRows& args, Apply apply) {
  const FloatEnvironment environment;
  const std::int64_t all = args.indices.count;
  std::uint64_t number[kChangeChunk];
  std::int64_t known = 0;  // of the numbers: those shown with the piece before
  for (std::int64_t first = 0; first < all;) {
    const std::int64_t made = std::min(kChangeChunk, all - first);
    args.addresses.numbers(args.indices, first + known, made - known, number + known);
    const std::int64_t soon = first + made < all ? kChangeSoon : 0;
    apply({.number = number, .first = first, .count = made - soon, .soon = soon});
    std::copy(number + made - soon, number + made, number);
    known = soon;
    first += made - soon;
  }
}

/// Indices of one part on their way to `apply`.
class PartPieces {
 public:
  PartPieces(const ChangeRows& args, const Apply& apply) : args_(args), apply_(apply) {}

  void add(std::int64_t i) {
    row_[count_] = args_.indices[i];
    from_[count_] = static_cast<std::uint64_t>(i);
    if (++count_ == kChangeChunk) send(kChangeSoon);
  }

  void end() { send(0); }

 private:
  void send(std::int64_t soon) {
    const RowIndices rows = {reinterpret_cast<const std::byte*>(row_), count_, true};
    args_.addresses.numbers(rows, known_, count_ - known_, number_ + known_);
    apply_({.number = number_, .from = from_, .count = count_ - soon, .soon = soon});
    std::copy(number_ + count_ - soon, number_ + count_, number_);
    std::copy(from_ + count_ - soon, from_ + count_, from_);
    count_ = known_ = soon;
  }

  const ChangeRows& args_;
  const Apply& apply_;
  std::int64_t count_ = 0, known_ = 0;  ///< entries, and those of them that have a number
  std::int64_t row_[kChangeChunk];
  std::uint64_t number_[kChangeChunk], from_[kChangeChunk];
};

/// The rows in as many parts as there are workers, and of each index the part. Indices are not
/// sorted: whoever changes the rows of a part passes over all parts and values in their order, so
/// that values which are read after each other lie near each other. More parts would draw them
/// apart.
class RowParts {
 public:
  explicit RowParts(const ChangeRows& args)
      : args_(args),
        parts_(std::min(args.executor->workers(), kMostParts)),
        part_(args.scratch->take<std::uint8_t>(words() * kWord)) {
    std::fill(part_.begin() + args.indices.count, part_.end(), kMostParts);
    args.executor->run(parts_, [&](const WorkItem& item) {
      const std::int64_t end = slice_begin(item.index + 1);
      for (std::int64_t i = slice_begin(item.index); i < end; ++i)
        part_[static_cast<std::size_t>(i)] = part_of(i);
    });
  }

  std::int64_t count() const { return parts_; }

  void change(std::int64_t part, const Apply& apply) const {
    PartPieces pieces(args_, apply);
    for (std::int64_t word = 0; word < words(); ++word)
      for (std::uint64_t same = bytes_like(part, word); same != 0; same &= same - 1)
        pieces.add(word * kWord + std::countr_zero(same) / 8);
    pieces.end();
  }

 private:
  static constexpr std::int64_t kWord = sizeof(std::uint64_t);

  std::int64_t words() const { return (args_.indices.count + kWord - 1) / kWord; }
  std::int64_t slice_begin(std::int64_t slice) const {
    return args_.indices.count / parts_ * slice + std::min(args_.indices.count % parts_, slice);
  }
  std::uint8_t part_of(std::int64_t i) const {
    return static_cast<std::uint8_t>(bucket_of(static_cast<std::uint64_t>(args_.indices[i]),
                                               static_cast<std::uint32_t>(parts_)));
  }

  /// The top bit of each byte of the word that is the part.
  std::uint64_t bytes_like(std::int64_t part, std::int64_t word) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kLow = 0x7f * kOnes;
    std::uint64_t bytes;
    std::memcpy(&bytes, part_.data() + word * kWord, sizeof(bytes));
    bytes ^= kOnes * static_cast<std::uint64_t>(part);
    return ~(((bytes & kLow) + kLow) | bytes | kLow);
  }

  const ChangeRows& args_;
  std::int32_t parts_;
  std::span<std::uint8_t> part_;  ///< by index, and of the rest of the last word nobody's
};

}  // namespace

void change_rows(const ChangeRows& args, FunctionRef<void(const ChangePiece&)> apply) {
  if (args.row_bytes == 0 || args.indices.count == 0) return;
  const bool parallel = args.executor != nullptr && args.executor->workers() > 1 &&
                        args.indices.count * args.row_bytes >= kParallelBytes;
  if (!parallel) return change_in_order(args, apply);
  args.scratch->reset();
  const RowParts parts(args);
  args.executor->run(parts.count(), [&](const WorkItem& item) {
    const FloatEnvironment environment;
    parts.change(item.index, apply);
  });
}

}  // namespace embertable
