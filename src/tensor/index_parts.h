#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/shape.h"
#include "embertable/variables/tensor_index.h"

namespace embertable {

/// A slice clipped to its axis: the elements start, start + step, ..., `count` of them.
struct CutSlice {
  std::int64_t start = 0, step = 1, count = 0;
};

/// Part of a normalized index, which names every axis: the ellipsis is expanded, whole axes are
/// added at the end, integers count from the beginning, and slices are clipped.
struct IndexPart {
  enum Kind : std::uint8_t { kInteger, kSlice, kNewAxis, kMask };
  Kind kind = kSlice;
  int axis = 0;               ///< first axis that it takes
  std::int64_t position = 0;  ///< kInteger
  CutSlice slice = {};        ///< kSlice
  Tensor mask = {};           ///< kMask: packed
  std::int64_t trues = 0;     ///< kMask: elements that it selects

  int axes() const { return kind == kNewAxis ? 0 : kind == kMask ? mask.rank() : 1; }
};

struct IndexParts {
  std::vector<IndexPart> parts;

  /// Integers and masks are not adjacent: the masks' axis comes first in the result.
  bool mask_first = false;

  /// Returns the axis of the result that `part` (a slice, or the first mask) becomes.
  int result_axis(std::size_t part) const;
};

/// The indexed object, for messages. A tensor has nothing to add to them.
class IndexSubject {
 public:
  virtual ~IndexSubject() = default;

  /// Returns the text that begins every message.
  virtual std::string subject() const { return ""; }

  /// Returns the text that ends a message about this row, which may be out of bounds.
  virtual std::string at_row(std::int64_t /*row*/) const { return ""; }
};

/// Resolves `parts` for this shape. Throws what `index` throws.
IndexParts index_parts(const Shape& shape, std::span<const Index> parts,
                       const IndexSubject& what = {});

/// Returns tensor[parts]. The parts were made for its shape, but may have been replaced by others
/// that fit.
Tensor index_by_parts(const Tensor& tensor, const IndexParts& parts);

/// Returns "is out of bounds for axis 0 with size 8".
std::string out_of_bounds_text(int axis, std::int64_t size);

}  // namespace embertable
