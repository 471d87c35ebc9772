#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/shape.h"
#include "embertable/variables/tensor_index.h"

namespace embertable {

/// A slice cut to its axis: the elements start, start + step, ..., `count` of them.
struct CutSlice {
  std::int64_t start = 0, step = 1, count = 0;
};

/// Part of an index whose every axis is named: what the user wrote, without ellipsis, whole axes
/// behind, integers from the beginning, slices cut.
struct IndexPart {
  enum Kind : std::uint8_t { kInteger, kSlice, kNewAxis, kMask };
  Kind kind = kSlice;
  int axis = 0;               ///< the first that it takes
  std::int64_t position = 0;  ///< kInteger
  CutSlice slice = {};        ///< kSlice
  Tensor mask = {};           ///< kMask: packed
  std::int64_t trues = 0;     ///< kMask: elements that it selects

  int axes() const { return kind == kNewAxis ? 0 : kind == kMask ? mask.rank() : 1; }
};

struct IndexParts {
  std::vector<IndexPart> parts;

  /// Integers and masks do not stand side by side: the masks' axis comes first in the result.
  bool mask_first = false;

  /// The axis of the result that `part` (a slice, or the first mask) becomes.
  int result_axis(std::size_t part) const;
};

/// What is indexed, for messages. A tensor has nothing to add to them.
class Indexed {
 public:
  virtual ~Indexed() = default;

  /// Begins every message.
  virtual std::string subject() const { return ""; }

  /// Ends one about this row, which may be outside.
  virtual std::string at_row(std::int64_t /*row*/) const { return ""; }
};

/// What `parts` mean for this shape. Throws what `index` throws.
IndexParts index_parts(const Shape& shape, std::span<const Index> parts, const Indexed& what = {});

/// tensor[parts], which were made for its shape, but may have been replaced by others that fit.
Tensor index_by_parts(const Tensor& tensor, const IndexParts& parts);

/// "is out of bounds for axis 0 with size 8".
std::string out_of_bounds_text(int axis, std::int64_t size);

}  // namespace embertable
