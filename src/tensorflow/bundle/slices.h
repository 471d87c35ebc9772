#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "embertable/tensorflow/tensor_bundle.h"

namespace embertable::formats {

using Dims = std::vector<std::int64_t>;

/// Returns the number of elements of a shape; empty if a dim is negative or the product does not
/// fit into 64 bits.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape) noexcept;

/// Returns "[3, 4]".
std::string shape_text(std::span<const std::int64_t> shape);

/// A part of a tensor: a range of every axis.
struct Box {
  Dims start;
  Dims length;

  /// Requires: the box belongs to a shape that has an element count.
  std::int64_t volume() const noexcept;
  bool covers(std::span<const std::int64_t> shape) const noexcept;
};

/// Returns the box of a whole shape.
Box whole_of(const Dims& shape);

/// Returns the box of a slice. Throws ValueError for another number of axes, and for a slice that
/// leaves the shape.
Box box_of(const TensorSlice& slice, std::span<const std::int64_t> shape);

/// Returns the intersection of two boxes of one tensor; empty if they share no element.
std::optional<Box> intersection(const Box& a, const Box& b);

/// True if two boxes of one tensor share an element.
bool share_an_element(const Box& a, const Box& b);

/// Maximum number of boxes that are compared each with each, because no plane separates them.
inline constexpr std::size_t kMaxComparedBoxes = 4096;

/// Returns two of the boxes, by index, that share an element. Takes n log n for boxes that planes
/// separate, such as those of grids and of trees of cuts. Throws ValueError for more than
/// kMaxComparedBoxes that none separates, unless two of the first of them share an element.
struct OverlappingPair {
  std::size_t first = 0, second = 0;
};
std::optional<OverlappingPair> find_overlap(std::span<const Box> boxes);

/// The elements that a box of a tensor has in common with another, as runs that are consecutive in
/// both, each stored row-major.
class BoxRuns {
 public:
  struct Run {
    std::int64_t from = 0;  ///< first element in the box that is read
    std::int64_t to = 0;    ///< first element in the box that is written
    std::int64_t count = 0;
  };

  /// `common` is the intersection of both boxes.
  BoxRuns(const Box& read, const Box& written, const Box& common);

  /// Returns false after the last run. `from` rises.
  bool next(Run& run);

  /// Returns the end of the last element that is read.
  std::int64_t read_end() const noexcept { return read_end_; }

 private:
  struct Axis {
    std::int64_t count, read_stride, written_stride, index;
  };
  std::vector<Axis> axes_;  ///< axes that runs do not cover, outermost first
  Run run_;
  std::int64_t read_end_ = 1;
  bool done_ = false;
};

}  // namespace embertable::formats
