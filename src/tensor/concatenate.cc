#include "tensor/concatenate.h"

#include <algorithm>
#include <vector>

#include "tensor/ranges.h"
#include "tensor/strides.h"

namespace embertable {
namespace {

/// Copies to contiguous elements.
void copy_packed(const Tensor& from, std::byte* to, Executor* executor) {
  const std::span<const std::byte> bytes = from.bytes();
  for_ranges(std::ssize(bytes), 1, executor, [&](std::int64_t first, std::int64_t last) {
    std::copy(bytes.begin() + first, bytes.begin() + last, to + first);
  });
}

}  // namespace

Shape joined(const Shape& first, const Shape& second) {
  Shape shape = first;
  for (const std::int64_t dim : second.dims()) shape = shape.append(dim);
  return shape;
}

Tensor concatenate(std::span<const Tensor> pieces, int axis, Executor* executor) {
  const Tensor& first = pieces.front();
  if (pieces.size() == 1) return first;
  const auto k = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[k] = 0;
  for (const Tensor& piece : pieces) dims[k] += piece.shape()[axis];
  Tensor whole(first.dtype(), Shape(std::span<const std::int64_t>(dims)));
  std::byte* to = whole.mutable_bytes().data();
  for (const Tensor& piece : pieces) {
    if (axis == 0 && piece.contiguous())
      copy_packed(piece, to, executor);
    else
      copy_elements(piece, to, whole.byte_strides());
    to += piece.shape()[axis] * whole.byte_strides()[k];
  }
  return whole;
}

}  // namespace embertable
