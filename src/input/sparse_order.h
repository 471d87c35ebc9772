#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/read_once.h"
#include "embertable/batch.h"
#include "embertable/shape.h"

namespace embertable::input {

/// Coordinates of the entries of a sparse feature. Borrowed.
struct Coordinates {
  IntegerSpan indices;  ///< [entries, rank of dense_shape]
  Shape dense_shape;    ///< rank >= 2; all dims but the last multiply without overflow
  /// Output rows of one sample (rank 2 only); 0: one, whatever the column.
  std::int64_t sequence = 0;
  std::int64_t entries = 0;
};

/// One entry's coordinates: the last axis, and the row-major position in all others.
struct Place {
  std::int64_t sample = 0;
  std::int64_t column = 0;
  bool inside = false;  ///< within the dense shape; else the rest is meaningless
};

/// Coordinates of type Int, prepared for the inner loops.
template <class Int>
class CoordinateView {
 public:
  explicit CoordinateView(const Coordinates& coordinates)
      : indices_(static_cast<const Int*>(coordinates.indices.data())),
        dims_(coordinates.dense_shape.dims()),
        sequence_(coordinates.sequence),
        entries_(coordinates.entries) {}

  Place operator[](std::int64_t entry) const {
    const auto rank = static_cast<std::int64_t>(dims_.size());
    const Int* const index = indices_ + entry * rank;
    std::uint64_t sample = unsigned_of(read_once(index[0]));
    bool inside = sample < unsigned_of(dims_[0]);
    for (std::int64_t axis = 1; axis + 1 < rank; ++axis) {
      const std::uint64_t dim = unsigned_of(dims_[axis]);
      const std::uint64_t at = unsigned_of(read_once(index[axis]));
      inside &= at < dim;
      sample = sample * dim + at;
    }
    const std::uint64_t column = unsigned_of(read_once(index[rank - 1]));
    inside &= column < unsigned_of(dims_.back());
    return {static_cast<std::int64_t>(sample), static_cast<std::int64_t>(column), inside};
  }

  bool kept(const Place& place) const { return sequence_ == 0 || place.column < sequence_; }

  /// Returns the output row of an entry that is kept; for one that is cut off, the first output row
  /// of the next sample.
  std::int64_t output(const Place& place) const {
    if (sequence_ == 0) return place.sample;
    const std::int64_t column = kept(place) ? place.column : sequence_;
    return static_cast<std::int64_t>(unsigned_of(place.sample) * unsigned_of(sequence_) +
                                     unsigned_of(column));
  }

  /// Returns the first entry that does not belong before `output_row`. Requires: the entries are in
  /// order.
  std::int64_t lower_bound(std::int64_t output_row) const {
    std::int64_t begin = 0;
    for (std::int64_t count = entries_; count > 0;) {
      const std::int64_t half = count / 2;
      const bool before = output((*this)[begin + half]) < output_row;
      begin += before ? half + 1 : 0;
      count = before ? count - half - 1 : half;
    }
    return begin;
  }

 private:
  template <class T>
  static std::uint64_t unsigned_of(T value) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }

  const Int* indices_;
  std::span<const std::int64_t> dims_;
  std::int64_t sequence_;
  std::int64_t entries_;
};

/// An entry in its output row.
struct PlacedEntry {
  std::int64_t column;
  std::uint32_t entry;   ///< its position in the caller's arrays
  std::uint32_t output;  ///< its output row
};

/// Memory for sorting entries that are not in canonical order. [entries] each.
struct SortSpace {
  std::span<PlacedEntry> order;  ///< in canonical order
  std::span<PlacedEntry> spare;
};

/// Returns the rule that an entry outside of the dense shape breaks, with the received value.
std::string broken_index_rule(const Coordinates& coordinates, std::int64_t entry);

/// Sorts the kept entries row-major; entries of equal coordinates keep their order. Counts by
/// output row, then sorts within each. Fills split [outputs + 1] and the first split[outputs] of
/// order. Reads each coordinate once. Returns -1, or the first entry outside of the dense shape,
/// for which nothing is sorted. Requires: outputs < 2^32.
std::int64_t order_entries(const Coordinates& coordinates, std::int64_t outputs,
                           std::int64_t* split, const SortSpace& space);

/// Returns the place of one entry.
Place place_of(const Coordinates& coordinates, std::int64_t entry);

/// Returns CoordinateView::output of a place.
std::int64_t output_row_of(const Coordinates& coordinates, const Place& place);

}  // namespace embertable::input
