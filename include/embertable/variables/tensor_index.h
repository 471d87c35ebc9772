#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>

#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

/// A bound or the step of a slice: an integer, or nothing where Python writes nothing. A tensor is
/// not allowed as a bound.
struct EMBERTABLE_API SliceBound {
  std::optional<std::int64_t> value;

  SliceBound() = default;
  SliceBound(int bound) : value(bound) {}           // NOLINT: written as in Python
  SliceBound(std::int64_t bound) : value(bound) {}  // NOLINT: written as in Python
  SliceBound(std::nullopt_t) {}                     // NOLINT: written as in Python

  /// Throws TypeError: using a tensor as a bound is not allowed.
  SliceBound(const Tensor& tensor);  // NOLINT: written as in Python
};

/// Selects elements of one axis like Python's start:stop:step.
struct Slice {
  SliceBound start = {};
  SliceBound stop = {};
  SliceBound step = {};
};

/// Stands for all axes that the other parts leave, each of them whole.
struct Ellipsis {};

/// Inserts an axis of one element.
struct NewAxis {};

/// One part of an index, which stands between two commas in its brackets: an integer, a slice, an
/// ellipsis, a new axis, or a boolean mask, which selects along all its axes.
///
/// Parts follow the rules of Python and NumPy: negative integers count from the end, slices are cut
/// to the axis, axes that nothing names are whole. A mask gives one axis, of its true elements in
/// row-major order, at the place of the mask's first axis. Several masks give one axis together:
/// the first true element of each, the second of each and so on; they must have equally many, or
/// one that goes with all. If something else stands between masks and integers, the masks' axis
/// comes first.
class EMBERTABLE_API Index {
 public:
  using Mask = Tensor;

  Index(int position) : part_(std::int64_t{position}) {}  // NOLINT: written as in Python
  Index(std::int64_t position) : part_(position) {}       // NOLINT: written as in Python
  Index(Slice slice) : part_(slice) {}                    // NOLINT: written as in Python
  Index(Ellipsis ellipsis) : part_(ellipsis) {}           // NOLINT: written as in Python
  Index(NewAxis axis) : part_(axis) {}                    // NOLINT: written as in Python

  /// Always throws ValueError: a mask has at least one axis.
  template <std::same_as<bool> B>                 ///< not a pointer
  Index(B mask) : Index(Tensor::scalar(mask)) {}  // NOLINT: written as in Python

  /// Makes a mask. Throws TypeError unless it is bool (a tensor of positions is not allowed),
  /// ValueError for rank 0.
  Index(const Tensor& mask);  // NOLINT: written as in Python

  const std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Mask>& part() const { return part_; }

 private:
  std::variant<std::int64_t, Slice, Ellipsis, NewAxis, Mask> part_;
};

/// Returns tensor[parts]. Shares the tensor's memory if there is no mask. Throws IndexError for an
/// integer outside of its axis and more parts than axes, naming part, axis and bound; ValueError
/// for a step of 0, a mask that does not fit its axes, masks that do not go together, several
/// ellipses, and more than Shape::kMaxRank axes, each axis of a mask counted.
EMBERTABLE_API Tensor index(const Tensor& tensor, std::span<const Index> parts);
inline Tensor index(const Tensor& tensor, std::initializer_list<Index> parts) {
  return index(tensor, std::span<const Index>(parts.begin(), parts.size()));
}

}  // namespace embertable
