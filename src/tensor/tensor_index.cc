#include "embertable/variables/tensor_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "embertable/errors.h"
#include "tensor/index_parts.h"
#include "tensor/strides.h"
#include "tensor/wrapping.h"

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

/// A mask, and the first of its axes in a view.
struct PlacedMask {
  const Tensor* mask = nullptr;
  int axis = 0;
};

/// A view that grows axis by axis, with the places of the masks' axes in it.
struct GrowingView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> dims;
  Tensor::Strides strides{};
  std::vector<PlacedMask> masks;

  void add(std::int64_t size, std::int64_t stride) {
    EMBERTABLE_ASSERT(dims.size() < strides.size());
    strides[dims.size()] = stride;
    dims.push_back(size);
  }

  void add(const IndexPart& part, const Tensor& tensor) {
    const auto stride = [&](int i) { return tensor.byte_strides()[part.axis + i]; };
    const auto bytes = Wrapping<std::int64_t>::mul;  // without elements they may be any

    switch (part.kind) {
      case IndexPart::kInteger:
        offset = Wrapping<std::int64_t>::add(offset, bytes(part.position, stride(0)));
        break;
      case IndexPart::kSlice:
        if (part.slice.count > 0)
          offset = Wrapping<std::int64_t>::add(offset, bytes(part.slice.start, stride(0)));
        add(part.slice.count, bytes(stride(0), part.slice.step));
        break;
      case IndexPart::kNewAxis:
        add(1, 0);
        break;
      case IndexPart::kMask:
        masks.push_back({&part.mask, static_cast<int>(dims.size())});
        for (int i = 0; i < part.axes(); ++i) add(tensor.shape()[part.axis + i], stride(i));
        break;
    }
  }
};

/// Returns the byte offsets, from the view's first element, of the mask's true elements.
std::vector<std::int64_t> true_offsets(const Tensor& mask, const std::int64_t* strides) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> at(mask.rank());
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

/// Returns the byte offsets of what the masks select together: element by element, or one for all.
std::vector<std::int64_t> selected_offsets(const Tensor& view, std::span<const PlacedMask> masks) {
  std::vector<std::int64_t> all = {0};
  for (const auto& [mask, axis] : masks) {
    const std::vector<std::int64_t> next = true_offsets(*mask, &view.byte_strides()[axis]);
    if (all.size() == 1) all = std::vector(next.size(), all.front());  // assign would free it first
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += next[next.size() == 1 ? 0 : i];
  }
  return all;
}

/// The view without the masks' axes: of one selected element.
struct RestOfView {
  std::vector<std::int64_t> dims;
  Tensor::Strides strides{};

  RestOfView(const Tensor& view, std::span<const PlacedMask> masks) {
    for (int axis = 0; axis < view.rank(); ++axis) {
      const bool masked = std::ranges::any_of(masks, [&](const PlacedMask& m) {
        return m.axis <= axis && axis < m.axis + m.mask->rank();
      });
      if (masked) continue;
      strides[dims.size()] = view.byte_strides()[axis];
      dims.push_back(view.shape()[axis]);
    }
  }
};

/// Returns what the masks select of the view; `axis` is where their axis goes.
Tensor select(const Tensor& view, std::span<const PlacedMask> masks, int axis) {
  const std::vector<std::int64_t> offsets = selected_offsets(view, masks);
  const RestOfView rest(view, masks);
  std::vector<std::int64_t> all = rest.dims;
  all.insert(all.begin() + axis, std::ssize(offsets));

  Tensor result(view.dtype(), Shape(all));
  std::byte* to = result.mutable_bytes().data();
  Tensor::Strides to_strides = result.byte_strides();
  const std::int64_t step = to_strides[axis];
  std::copy(to_strides.begin() + axis + 1, to_strides.end(), to_strides.begin() + axis);
  const Shape rest_shape((std::span<const std::int64_t>(rest.dims)));
  if (result.size() == 0) return result;
  for (const std::int64_t offset : offsets) {
    copy_elements(view.view(offset, rest_shape, rest.strides), to, to_strides);
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
  if (grown.masks.empty()) return view;
  return select(view, grown.masks, parts.mask_first ? 0 : grown.masks.front().axis);
}

Tensor index(const Tensor& tensor, std::span<const Index> parts) {
  return index_by_parts(tensor, index_parts(tensor.shape(), parts));
}

}  // namespace embertable
