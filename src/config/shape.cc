#include "embertable/shape.h"

#include <algorithm>
#include <limits>

#include "embertable/errors.h"

namespace embertable {
namespace {

[[noreturn]] void refuse_dim(std::int64_t dim, std::size_t axis) {
  throw ValueError("shape: dims must be >= 0, or -1 for unknown, got " + std::to_string(dim) +
                   " at axis " + std::to_string(axis));
}

[[noreturn]] void refuse_rank(std::size_t rank) {
  throw ValueError("shape: rank must be at most " + std::to_string(Shape::kMaxRank) + ", got " +
                   std::to_string(rank));
}

void check_dim(std::int64_t dim, std::size_t axis) {
  if (dim < 0 && dim != Shape::kUnknown) refuse_dim(dim, axis);
}

void check_rank(std::size_t rank) {
  if (rank > static_cast<std::size_t>(Shape::kMaxRank)) refuse_rank(rank);
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) {
  check_rank(dims.size());
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    check_dim(dims[axis], axis);
    dims_[axis] = dims[axis];
  }
  rank_ = static_cast<int>(dims.size());
}

Shape Shape::scalar() { return Shape(std::span<const std::int64_t>()); }

std::span<const std::int64_t> Shape::dims() const noexcept {
  return {dims_.data(), static_cast<std::size_t>(std::max(rank_, 0))};
}

bool Shape::fully_defined() const noexcept {
  return has_rank() && std::ranges::find(dims(), kUnknown) == dims().end();
}

std::int64_t Shape::num_elements() const noexcept {
  if (std::ranges::find(dims(), 0) != dims().end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) {
    if (__builtin_mul_overflow(product, dim, &product)) {
      return std::numeric_limits<std::int64_t>::max();
    }
  }
  return product;
}

Shape Shape::with_leading(std::int64_t dim) const {
  check_dim(dim, 0);
  Shape result = *this;
  result.dims_[0] = dim;
  return result;
}

Shape Shape::without_last() const { return Shape(dims().first(dims().size() - 1)); }

Shape Shape::append(std::int64_t dim) const {
  if (!has_rank()) return *this;
  check_rank(dims().size() + 1);
  check_dim(dim, dims().size());
  Shape result = *this;
  result.dims_[dims().size()] = dim;
  ++result.rank_;
  return result;
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
  return a.rank_ == b.rank_ && std::ranges::equal(a.dims(), b.dims());
}

}  // namespace embertable
