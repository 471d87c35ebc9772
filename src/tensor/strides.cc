#include "tensor/strides.h"

#include <array>
#include <cstring>

namespace embertable {
namespace {

struct Axis {
  std::int64_t size, from, to;  ///< elements, and bytes between two of them
};

/// The axes from the last to the first, joined if both sides continue without a gap.
struct Walk {
  std::array<Axis, Shape::kMaxRank> axis{};
  std::size_t axes = 0;

  Walk(const Tensor& from, const Tensor::Strides& to) {
    for (int i = from.rank() - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      add({from.shape()[i], from.byte_strides()[k], to[k]});
    }
  }

  void add(const Axis& next) {
    if (next.size == 1) return;
    if (axes > 0) {
      Axis& last = axis[axes - 1];
      if (next.from == last.from * last.size && next.to == last.to * last.size) {
        last.size *= next.size;
        return;
      }
    }
    axis[axes++] = next;
  }
};

template <class Element>
void copy_line(const std::byte* from, std::byte* to, const Axis& axis) noexcept {
  for (std::int64_t i = 0; i < axis.size; ++i)
    std::memcpy(to + i * axis.to, from + i * axis.from, sizeof(Element));
}

/// Copies one line along the innermost axis.
void copy_line_of(std::int64_t width, const std::byte* from, std::byte* to,
                  const Axis& axis) noexcept {
  if (axis.from == width && axis.to == width) {
    std::memcpy(to, from, axis.size * width);
  } else if (width == 1) {
    copy_line<std::uint8_t>(from, to, axis);
  } else if (width == 2) {
    copy_line<std::uint16_t>(from, to, axis);
  } else if (width == 4) {
    copy_line<std::uint32_t>(from, to, axis);
  } else {
    copy_line<std::uint64_t>(from, to, axis);
  }
}

}  // namespace

Tensor::Strides packed_strides(const Shape& shape, std::int64_t element_bytes) noexcept {
  Tensor::Strides strides{};
  std::int64_t bytes = element_bytes;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = bytes;
    if (__builtin_mul_overflow(bytes, shape[i], &bytes)) bytes = 0;  // there are no elements
  }
  return strides;
}

void copy_elements(const Tensor& from, std::byte* to, const Tensor::Strides& to_strides) noexcept {
  if (from.size() == 0) return;
  const std::int64_t width = byte_width(from.dtype());
  Walk walk(from, to_strides);
  if (walk.axes == 0) walk.axis[walk.axes++] = {1, width, width};
  std::array<std::int64_t, Shape::kMaxRank> at{};
  const std::byte* source = from.data();
  for (std::size_t k = 0; k < walk.axes;) {
    copy_line_of(width, source, to, walk.axis[0]);
    for (k = 1; k < walk.axes; ++k) {  // the next line, as an odometer counts
      const Axis& axis = walk.axis[k];
      if (++at[k] < axis.size) {
        source += axis.from;
        to += axis.to;
        break;
      }
      at[k] = 0;
      source -= axis.from * (axis.size - 1);
      to -= axis.to * (axis.size - 1);
    }
  }
}

Extent extent(const Tensor& tensor) noexcept {
  if (tensor.size() == 0) return {};
  std::int64_t below = 0, above = byte_width(tensor.dtype());
  for (int i = 0; i < tensor.rank(); ++i) {
    const std::int64_t span = tensor.byte_strides()[i] * (tensor.shape()[i] - 1);
    (span < 0 ? below : above) += span;
  }
  const auto at = reinterpret_cast<std::uintptr_t>(tensor.data());
  return {at + static_cast<std::uintptr_t>(below), at + static_cast<std::uintptr_t>(above)};
}

}  // namespace embertable
