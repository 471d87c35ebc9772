#pragma once

#include <cstddef>
#include <cstdint>

#include "embertable/variables/tensor.h"

namespace embertable {

/// The strides of row-major elements without gaps.
Tensor::Strides packed_strides(const Shape& shape, std::int64_t element_bytes) noexcept;

/// Copies every element of `from` to where the strides say. Nothing overlaps.
void copy_elements(const Tensor& from, std::byte* to, const Tensor::Strides& to_strides) noexcept;

/// The addresses that a tensor's elements lie in: [first, last), equal where there are none.
struct Extent {
  std::uintptr_t first = 0, last = 0;
  bool overlaps(const Extent& other) const noexcept {
    return first < other.last && other.first < last;
  }
};
Extent extent(const Tensor& tensor) noexcept;

}  // namespace embertable
