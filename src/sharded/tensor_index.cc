#include "embertable/tensor_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "embertable/errors.h"
#include "sharded/index_parts.h"
#include "sharded/strides.h"

namespace embertable {
namespace {

const Tensor& checked_mask(const Tensor& mask) {
  if (mask.dtype() != DType::kBool)
    throw TypeError(fmt::format(
        "index: using a tensor of {} as an index is not allowed; a mask is a tensor of bool",
        to_string(mask.dtype())));
  if (mask.rank() == 0)
    throw ValueError("index: a mask cannot be scalar: it has the leading axes of what it selects");
  return mask;
}

/// A view that grows axis by axis, and where in it the axes of a mask begin.
struct GrowingView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> dims;
  Tensor::Strides strides{};
  const Tensor* mask = nullptr;
  int mask_axis = 0;

  void add(std::int64_t size, std::int64_t stride) {
    if (dims.size() == strides.size())
      throw ValueError(fmt::format("index: the result has more than {} axes", Shape::kMaxRank));
    strides[dims.size()] = stride;
    dims.push_back(size);
  }

  void add(const IndexPart& part, const Tensor& tensor) {
    const auto stride = [&](int i) {
      return tensor.byte_strides()[static_cast<std::size_t>(part.axis + i)];
    };
    switch (part.kind) {
      case IndexPart::kInteger:
        offset += part.position * stride(0);
        break;
      case IndexPart::kSlice:
        if (part.slice.count > 0) offset += part.slice.start * stride(0);
        add(part.slice.count, stride(0) * part.slice.step);
        break;
      case IndexPart::kNewAxis:
        add(1, 0);
        break;
      case IndexPart::kMask:
        mask = &part.mask;
        mask_axis = static_cast<int>(dims.size());
        for (int i = 0; i < part.axes(); ++i) add(tensor.shape()[part.axis + i], stride(i));
        break;
    }
  }
};

/// Byte offsets, from the view's first element, of the mask's true elements.
std::vector<std::int64_t> true_offsets(const Tensor& mask, const std::int64_t* strides) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> at(static_cast<std::size_t>(mask.rank()));
  std::int64_t offset = 0;
  for (const std::byte selected : mask.bytes()) {
    if (selected != std::byte{0}) offsets.push_back(offset);
    for (int i = mask.rank() - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      offset += strides[k];
      if (++at[k] < mask.shape()[i]) break;
      offset -= strides[k] * mask.shape()[i];
      at[k] = 0;
    }
  }
  return offsets;
}

/// What the mask selects of the view, its axis where `axis` says.
Tensor select(const Tensor& view, const Tensor& mask, int mask_axis, int axis) {
  const auto k = static_cast<std::size_t>(mask_axis);
  const std::vector<std::int64_t> offsets = true_offsets(mask, &view.byte_strides()[k]);
  const std::span<const std::int64_t> dims = view.shape().dims();
  // Of one selected element: the view without the mask's axes.
  std::vector<std::int64_t> rest(dims.begin(), dims.end());
  Tensor::Strides strides{};
  rest.erase(rest.begin() + mask_axis, rest.begin() + mask_axis + mask.rank());
  for (std::size_t i = 0; i < rest.size(); ++i)
    strides[i] = view.byte_strides()[i < k ? i : i + static_cast<std::size_t>(mask.rank())];
  std::vector<std::int64_t> all = rest;
  all.insert(all.begin() + axis, static_cast<std::int64_t>(offsets.size()));

  Tensor result(view.dtype(), Shape(all));
  std::byte* to = result.mutable_bytes().data();
  Tensor::Strides to_strides = result.byte_strides();
  const std::int64_t step = to_strides[static_cast<std::size_t>(axis)];
  std::copy(to_strides.begin() + axis + 1, to_strides.end(), to_strides.begin() + axis);
  const Shape rest_shape((std::span<const std::int64_t>(rest)));
  for (const std::int64_t offset : offsets) {
    copy_elements(view.view(offset, rest_shape, strides), to, to_strides);
    to += step;
  }
  return result;
}

}  // namespace

SliceBound::SliceBound(const Tensor& tensor) {
  throw TypeError(fmt::format("index: using a tensor of {} as a bound of a slice is not allowed",
                              to_string(tensor.dtype())));
}

Index::Index(const Tensor& mask) : part_(checked_mask(mask)) {}

Tensor index_by_parts(const Tensor& tensor, const IndexParts& parts) {
  GrowingView grown;
  for (const IndexPart& part : parts.parts) grown.add(part, tensor);
  const Tensor view =
      tensor.view(grown.offset, Shape(std::span<const std::int64_t>(grown.dims)), grown.strides);
  if (grown.mask == nullptr) return view;
  return select(view, *grown.mask, grown.mask_axis, parts.mask_first ? 0 : grown.mask_axis);
}

Tensor index(const Tensor& tensor, std::span<const Index> parts) {
  return index_by_parts(tensor, index_parts(tensor.shape(), parts));
}

}  // namespace embertable
