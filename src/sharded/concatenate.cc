#include "sharded/concatenate.h"

#include <vector>

#include "sharded/strides.h"

namespace embertable {

Tensor concatenate(std::span<const Tensor> pieces, int axis) {
  const Tensor& first = pieces.front();
  if (pieces.size() == 1) return first;
  const auto k = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[k] = 0;
  for (const Tensor& piece : pieces) dims[k] += piece.shape()[axis];
  Tensor whole(first.dtype(), Shape(std::span<const std::int64_t>(dims)));
  std::byte* to = whole.mutable_bytes().data();
  for (const Tensor& piece : pieces) {
    copy_elements(piece, to, whole.byte_strides());
    to += piece.shape()[axis] * whole.byte_strides()[k];
  }
  return whole;
}

}  // namespace embertable
