#include "embertable/shape.h"

#include <algorithm>

#include "embertable/errors.h"

namespace embertable {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > kMaxRank) {
    throw ValueError("shape: rank must be <= " + std::to_string(kMaxRank) + ", got " + std::to_string(dims.size()));
  }
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < kUnknown) {
      throw ValueError("shape: dims must be >= 0, or -1 for unknown; got " + std::to_string(dims[axis]) + " on axis " +
                       std::to_string(axis));
    }
    dims_[axis] = dims[axis];
  }
}

Shape Shape::scalar() { return Shape(std::span<const std::int64_t>()); }

std::span<const std::int64_t> Shape::dims() const noexcept {
  return {dims_.data(), static_cast<std::size_t>(std::max(rank_, 0))};
}

bool Shape::fully_defined() const noexcept {
  return has_rank() && std::find(dims().begin(), dims().end(), kUnknown) == dims().end();
}

std::int64_t Shape::num_elements() const noexcept {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

Shape Shape::with_leading(std::int64_t dim) const {
  Shape shape = *this;
  shape.dims_[0] = dim;
  return shape;
}

Shape Shape::without_last() const { return Shape(dims().first(dims().size() - 1)); }

Shape Shape::append(std::int64_t dim) const {
  if (rank_ >= kMaxRank) {
    throw ValueError("shape: " + to_string() + " has no room for another axis, rank must be <= " +
                     std::to_string(kMaxRank));
  }
  Shape shape = *this;
  shape.dims_[static_cast<std::size_t>(shape.rank_++)] = dim;
  return shape;
}

std::string Shape::to_string() const {
  if (!has_rank()) return "(unknown rank)";
  std::string text = "(";
  for (const std::int64_t dim : dims()) {
    if (text.size() > 1) text += ", ";
    text += dim == kUnknown ? "?" : std::to_string(dim);
  }
  return text + ")";
}

bool operator==(const Shape& a, const Shape& b) noexcept {
  return a.rank_ == b.rank_ && std::equal(a.dims().begin(), a.dims().end(), b.dims().begin());
}

}  // namespace embertable
