#include <algorithm>
#include <bit>
#include <cstring>

#include "base/float_environment.h"
#include "base/rows.h"
#include "tensor/ranges.h"
#include "variable/row_addresses.h"

namespace embertable {
namespace {

using Apply = FunctionRef<void(const ChangePiece&)>;

/// Number of entries that are made at once: they stay in the first-level cache beside the rows.
constexpr std::int64_t kChangeChunk = 1024;

/// Number of entries of the next piece that are passed with each piece for prefetching.
constexpr std::int64_t kChangeSoon = 16;

/// Number of entries that workers divide at once: the notes on them stay in the second-level cache.
constexpr std::int64_t kChangeBatch = 1 << 20;

/// Minimum row bytes for several workers: shorter rows share cache lines, for which workers would
/// compete.
constexpr std::int64_t kLineOfRow = 64;

/// Maximum number of ranges, because each takes up to 4 bytes of notes per entry.
constexpr std::int32_t kMostRanges = 16;

/// Maximum number of parts: a part's number is a byte, and one number means no part.
constexpr std::int32_t kMostParts = 255;

/// Some of the indices, given by their places.
struct ChangeEntries {
  std::int64_t first = 0, count = 0;
  const std::uint32_t* behind = nullptr;  ///< [count], behind `first`; null: one after the other

  std::int64_t operator[](std::int64_t k) const noexcept {
    return first + (behind == nullptr ? k : std::int64_t{behind[k]});
  }

  /// Slice `slice` of `slices` begins with entry `begin(slice, slices)`.
  std::int64_t begin(std::int64_t slice, std::int64_t slices) const noexcept {
    return count / slices * slice + std::min(count % slices, slice);
  }
};

/// Returns the number of bits that mark the rows of `count` entries if there are at least as many
/// rows.
std::uint64_t most_marks(std::int64_t count) {
  return std::bit_ceil(static_cast<std::uint64_t>(8 * count));
}
std::int64_t words_of_marks(std::int64_t count, std::int64_t rows) {
  return static_cast<std::int64_t>(std::min(most_marks(count), static_cast<std::uint64_t>(rows))) /
             64 +
         1;
}

/// Memory for the notes on batches of up to a number of entries. All of it is taken before a row
/// changes, so that a call that finds no memory has changed nothing.
struct ChangeSpace {
  ChangeSpace(const ChangeRows& args, std::int64_t count) {
    const std::int64_t workers = args.executor->workers();
    part = args.scratch->take<std::uint8_t>((count + 7) / 8 * 8);
    if (!has_ranges(args)) return;
    waiting = args.scratch->take<std::uint32_t>(count);
    waits = args.scratch->take<std::int64_t>(workers);
    marks = args.scratch->take<std::uint64_t>(2 * (workers - 1) *
                                              words_of_marks(count, args.addresses.rows()));
  }

  static bool has_ranges(const ChangeRows& args) {
    return args.row_bytes >= kLineOfRow && args.executor->workers() <= kMostRanges;
  }

  std::span<std::uint8_t> part;
  std::span<std::uint32_t> waiting;
  std::span<std::int64_t> waits;
  std::span<std::uint64_t> marks;
};

/// Changes rows for indices [begin, end) in the caller's order.
void change_in_order(const ChangeRows& args, Apply apply, std::int64_t begin, std::int64_t end) {
  const FloatEnvironment environment;
  std::uint64_t number[kChangeChunk];
  std::int64_t known = 0;  // count of the numbers that were shown with the piece before
  for (std::int64_t first = begin; first < end;) {
    const std::int64_t made = std::min(kChangeChunk, end - first);
    args.addresses.numbers(args.indices, first + known, made - known, number + known);
    const std::int64_t soon = first + made < end ? kChangeSoon : 0;
    apply({.number = number, .first = first, .count = made - soon, .soon = soon});
    std::copy(number + made - soon, number + made, number);
    known = soon;
    first += made - soon;
  }
}

/// Collects indices of one worker and passes them to `apply`.
class ChangePieces {
 public:
  ChangePieces(const ChangeRows& args, const Apply& apply) : args_(args), apply_(apply) {}

  void add(std::int64_t i) {
    row_[count_] = args_.indices[i];
    from_[count_] = static_cast<std::uint64_t>(i);
    if (++count_ == kChangeChunk) send(kChangeSoon);
  }

  /// Adds the elements of [begin, end) that need not wait: !waits(row). Writes the places of the
  /// others, relative to `first`, to `waiting`; returns how many.
  template <class Waits>
  std::int64_t add_unless(Waits waits, std::int64_t begin, std::int64_t end, std::int64_t first,
                          std::uint32_t* waiting) {
    std::int64_t found = 0;
    while (begin < end) {
      const RowIndices indices = args_.indices;
      const std::int64_t stop = std::min(end, begin + kChangeChunk - count_);
      std::int64_t count = count_;
      for (; begin < stop; ++begin) {  // without a branch: which rows wait is no pattern
        const std::int64_t row = indices[begin];
        const bool is_later = waits(row);
        row_[count] = row;
        from_[count] = static_cast<std::uint64_t>(begin);
        count += is_later ? 0 : 1;
        waiting[found] = static_cast<std::uint32_t>(begin - first);
        found += is_later ? 1 : 0;
      }
      count_ = count;
      if (count_ == kChangeChunk) send(kChangeSoon);
    }
    return found;
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

/// Divides the rows into one part per worker, and notes the part of each entry. Entries are not
/// sorted: the worker of a part passes over all parts and values in their order, so that values
/// which are read one after the other are near each other. More parts would separate them.
class RowParts {
 public:
  RowParts(const ChangeRows& args, const ChangeEntries& entries, const ChangeSpace& space)
      : args_(args),
        entries_(entries),
        parts_(std::min(args.executor->workers(), kMostParts)),
        part_(space.part.first(words() * kWord)) {
    std::fill(part_.begin() + entries.count, part_.end(), kMostParts);
    args.executor->run(parts_, [&](const WorkItem& item) {
      const std::int64_t end = entries_.begin(item.index + 1, parts_);
      for (std::int64_t k = entries_.begin(item.index, parts_); k < end; ++k) part_[k] = part_of(k);
    });
  }

  void change(const Apply& apply) const {
    args_.executor->run(parts_, [&](const WorkItem& item) {
      const FloatEnvironment environment;
      ChangePieces pieces(args_, apply);
      for (std::int64_t word = 0; word < words(); ++word)
        for (std::uint64_t same = bytes_like(item.index, word); same != 0; same &= same - 1)
          pieces.add(entries_[word * kWord + std::countr_zero(same) / 8]);
      pieces.end();
    });
  }

 private:
  static constexpr std::int64_t kWord = sizeof(std::uint64_t);

  std::int64_t words() const { return (entries_.count + kWord - 1) / kWord; }
  std::uint8_t part_of(std::int64_t k) const {
    const std::int64_t row = args_.indices[entries_[k]];
    return static_cast<std::uint8_t>(
        bucket_of(static_cast<std::uint64_t>(row), static_cast<std::uint32_t>(parts_)));
  }

  /// Returns a word with the top bit set of each byte that is the part.
  std::uint64_t bytes_like(std::int64_t part, std::int64_t word) const {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kLow = 0x7f * kOnes;
    std::uint64_t bytes;
    std::memcpy(&bytes, part_.data() + word * kWord, sizeof(bytes));
    bytes ^= kOnes * static_cast<std::uint64_t>(part);
    return ~(((bytes & kLow) + kLow) | bytes | kLow);
  }

  const ChangeRows& args_;
  ChangeEntries entries_;
  std::int32_t parts_;
  std::span<std::uint8_t> part_;  ///< by entry, and of the rest of the last word nobody's
};

/// Whether a row has been marked; rows that share its bit count as marked too.
struct RowMarks {
  const std::uint64_t* words = nullptr;
  std::uint64_t factor = 1;  ///< the bit of a row is row * factor / 2^shift, modulo 2^64
  int shift = 0;

  std::uint64_t bit(std::int64_t row) const noexcept {
    return static_cast<std::uint64_t>(row) * factor >> shift;
  }
  bool operator()(std::int64_t row) const noexcept {
    return (words[bit(row) / 64] >> (bit(row) % 64) & 1) != 0;
  }
};

/// Divides the entries into one range per worker, one after the other, so that each reads
/// consecutive values. A row that an earlier range names waits, with all entries that a range has
/// for it, until all ranges are done: its changes stay in order.
class ChangeRanges {
 public:
  ChangeRanges(const ChangeRows& args, const ChangeEntries& entries, const ChangeSpace& space)
      : args_(args),
        entries_(entries),
        ranges_(args.executor->workers()),
        waiting_(space.waiting),
        waits_(space.waits),
        words_(words_of_marks(entries.count, args.addresses.rows())),
        words_of_halves_(space.marks) {
    const std::uint64_t most = most_marks(entries.count);
    if (static_cast<std::uint64_t>(args.addresses.rows()) > most) {
      marks_.factor = 0x9e3779b97f4a7c15;
      marks_.shift = 64 - std::countr_zero(most);
    }
    mark();
  }

  /// Returns false if most rows would wait.
  bool pays() const {
    // Samples many words at a fixed stride: reading all would take as long as changing some
    // thousand rows, and a few would say nothing about rows that are close together.
    constexpr std::int64_t kFewWords = 4096, kSampled = 16;
    const std::int64_t step = words_ <= kFewWords ? 1 : kSampled;
    const std::uint64_t* const all = of_range(ranges_ - 1);
    std::int64_t marked = 0;
    for (std::int64_t word = 0; word < words_; word += step) marked += std::popcount(all[word]);
    return marked * step * 4 >= begin(ranges_ - 1) * 3;
  }

  /// Changes everything except what waits, which it returns.
  ChangeEntries change(const Apply& apply) {
    args_.executor->run(ranges_, [&](const WorkItem& item) {
      const std::int64_t first = begin(item.index), end = begin(item.index + 1);
      if (item.index == 0)
        return change_in_order(args_, apply, entries_.first, entries_.first + end);
      const FloatEnvironment environment;
      RowMarks earlier = marks_;
      earlier.words = of_range(item.index);
      ChangePieces pieces(args_, apply);
      waits_[item.index] = pieces.add_unless(earlier, entries_.first + first, entries_.first + end,
                                             entries_.first, waiting_.data() + first);
      pieces.end();
    });
    std::uint32_t* to = waiting_.data();
    for (std::int64_t range = 1; range < ranges_; ++range)
      to = std::copy_n(waiting_.data() + begin(range), waits_[range], to);
    return {entries_.first, to - waiting_.data(), waiting_.data()};
  }

 private:
  /// Returns where a range begins. Nothing waits in the first range, so it gets more entries to
  /// take as long as the others.
  std::int64_t begin(std::int64_t range) const {
    constexpr std::int64_t kOthers = 8, kFirst = 9;
    const std::int64_t before = range == 0 ? 0 : kFirst + kOthers * (range - 1);
    return entries_.count * before / (kFirst + kOthers * (ranges_ - 1));
  }

  /// Returns the bits of the rows that the first `halves` halves of ranges name. Requires: halves
  /// >= 1.
  std::uint64_t* of_halves(std::int64_t halves) const {
    return words_of_halves_.data() + (halves - 1) * words_;
  }

  /// Returns the bits of the rows that ranges before this one name. Requires: it is not the first.
  std::uint64_t* of_range(std::int64_t range) const { return of_halves(2 * range); }

  /// Marks by halves, so that two workers have one each.
  void mark() {
    const std::int64_t halves = 2 * (ranges_ - 1);
    args_.executor->run(halves, [&](const WorkItem& item) {
      std::uint64_t* const words = of_halves(item.index + 1);
      std::fill_n(words, words_, 0);
      const std::int64_t first = begin(item.index / 2), end = begin(item.index / 2 + 1);
      const std::int64_t middle = first + (end - first) / 2;
      const RowIndices indices = args_.indices;
      const RowMarks marks = marks_;
      for (std::int64_t k = item.index % 2 == 0 ? first : middle;
           k < (item.index % 2 == 0 ? middle : end); ++k) {
        const std::uint64_t bit = marks.bit(indices[entries_.first + k]);
        words[bit / 64] |= std::uint64_t{1} << (bit % 64);
      }
    });
    const ChangeEntries words = {.count = words_};
    args_.executor->run(ranges_, [&](const WorkItem& item) {
      const std::int64_t first = words.begin(item.index, ranges_);
      const std::int64_t end = words.begin(item.index + 1, ranges_);
      for (std::int64_t half = 2; half <= halves; ++half)
        for (std::int64_t word = first; word < end; ++word)
          of_halves(half)[word] |= of_halves(half - 1)[word];
    });
  }

  const ChangeRows& args_;
  ChangeEntries entries_;
  std::int64_t ranges_;
  std::span<std::uint32_t> waiting_;  ///< by entry: each range's from where it begins
  std::span<std::int64_t> waits_;     ///< by range, how many
  RowMarks marks_;
  std::int64_t words_;
  std::span<std::uint64_t> words_of_halves_;
};

bool is_much(const ChangeRows& args, std::int64_t count) {
  return args.executor != nullptr && args.executor->workers() > 1 &&
         count * args.row_bytes >= kSharedOutBytes;
}

void change_by_parts(const ChangeRows& args, const ChangeEntries& entries, const ChangeSpace& space,
                     const Apply& apply) {
  if (is_much(args, entries.count)) return RowParts(args, entries, space).change(apply);
  const FloatEnvironment environment;
  ChangePieces pieces(args, apply);
  for (std::int64_t k = 0; k < entries.count; ++k) pieces.add(entries[k]);
  pieces.end();
}

void change_batch(const ChangeRows& args, const ChangeEntries& entries, const ChangeSpace& space,
                  const Apply& apply) {
  if (ChangeSpace::has_ranges(args)) {
    ChangeRanges ranges(args, entries, space);
    if (ranges.pays()) return change_by_parts(args, ranges.change(apply), space, apply);
  }
  change_by_parts(args, entries, space, apply);
}

}  // namespace

void change_rows(const ChangeRows& args, FunctionRef<void(const ChangePiece&)> apply) {
  const std::int64_t count = args.indices.count;
  if (args.row_bytes == 0 || count == 0) return;
  if (!is_much(args, count)) return change_in_order(args, apply, 0, count);
  const ChangeSpace space(args, std::min(kChangeBatch, count));
  for (std::int64_t first = 0; first < count; first += kChangeBatch)
    change_batch(args, {first, std::min(kChangeBatch, count - first)}, space, apply);
}

}  // namespace embertable
