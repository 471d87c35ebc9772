#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/variables/tensor.h"

namespace embertable {

/// Returns the strides of row-major elements without gaps.
Tensor::Strides packed_strides(const Shape& shape, std::int64_t element_bytes) noexcept;

/// Copies every element of `from` to the place that the strides give. Requires: nothing overlaps.
void copy_elements(const Tensor& from, std::byte* to, const Tensor::Strides& to_strides) noexcept;

/// Addresses of a tensor's elements: [first, last), equal if there are none.
struct Extent {
  std::uintptr_t first = 0, last = 0;
  bool overlaps(const Extent& other) const noexcept {
    return first < other.last && other.first < last;
  }
};
Extent extent(const Tensor& tensor) noexcept;

}  // namespace embertable
