#include "embertable/variables/tensor.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/enumerators.h"
#include "base/memory.h"
#include "embertable/errors.h"
#include "tensor/dtypes.h"
#include "tensor/strides.h"

namespace embertable {
namespace {

/// From this size on, memory comes from the kernel in huge pages.
constexpr std::int64_t kLargeBytes = std::int64_t{4} << 20;

void check_shape(const Shape& shape) {
  if (!shape.fully_defined())
    throw ValueError(fmt::format("tensor: shape must be fully defined, got {}", shape.to_string()));
}

std::int64_t checked_bytes(DType dtype, const Shape& shape) {
  check_enumerator(dtype, "tensor: dtype");
  check_shape(shape);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.num_elements(), byte_width(dtype), &bytes))
    throw ValueError(fmt::format("tensor: {} of shape {} has more than 2^63 bytes",
                                 to_string(dtype), shape.to_string()));
  return bytes;
}

/// Returns zeros on a 64-byte border.
std::shared_ptr<const void> zeros(std::int64_t bytes) {
  if (bytes >= kLargeBytes) {
    auto mapping = std::make_shared<Mapping>(bytes);
    return {mapping, mapping->data()};
  }
  const auto rounded = static_cast<std::size_t>((bytes + 64) / 64 * 64);
  void* data = std::aligned_alloc(64, rounded);
  if (data == nullptr) throw IoError(fmt::format("tensor: cannot have {} bytes of memory", bytes));
  std::memset(data, 0, rounded);
  return {data, [](const void* p) { std::free(const_cast<void*>(p)); }};
}

void check_alignment(const void* data, DType dtype, const Shape& shape,
                     const Tensor::Strides& strides) {
  const std::int64_t width = byte_width(dtype);
  auto bits = reinterpret_cast<std::uintptr_t>(data);
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > 1) bits |= static_cast<std::uintptr_t>(strides[i]);
  if (shape.num_elements() > 0 && bits % static_cast<std::uintptr_t>(width) != 0)
    throw ValueError(fmt::format("tensor: {} needs addresses and strides that are multiples of {}",
                                 to_string(dtype), width));
}

}  // namespace

std::int64_t byte_width(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kBFloat16:
    case DType::kFloat16:
      return 2;
    case DType::kBool:
      return 1;
    default:
      return 4;
  }
}

std::string_view to_string(DType dtype) noexcept {
  constexpr std::string_view kNames[] = {"float32", "float64",  "int32",  "int64",
                                         "bool",    "bfloat16", "float16"};
  const auto i = static_cast<std::size_t>(dtype);
  return i < std::size(kNames) ? kNames[i] : "?";
}

Tensor::Tensor(DType dtype, const Shape& shape)
    : dtype_(dtype), shape_(shape), owner_(zeros(checked_bytes(dtype, shape))) {
  data_ = static_cast<const std::byte*>(owner_.get());
  strides_ = packed_strides(shape_, byte_width(dtype_));
}

Tensor Tensor::copy_of(const void* values, std::size_t count, DType dtype, const Shape& shape) {
  check_shape(shape);
  if (static_cast<std::uint64_t>(shape.num_elements()) != count)
    throw ValueError(fmt::format("tensor: shape {} has {} elements, got {} values",
                                 shape.to_string(), shape.num_elements(), count));
  Tensor tensor(dtype, shape);
  const std::span<std::byte> bytes = tensor.mutable_bytes();
  if (!bytes.empty()) std::memcpy(bytes.data(), values, bytes.size());
  return tensor;
}

Tensor Tensor::wrap(const void* data, DType dtype, const Shape& shape,
                    std::span<const std::int64_t> byte_strides, std::shared_ptr<const void> owner) {
  checked_bytes(dtype, shape);
  if (byte_strides.size() != shape.dims().size())
    throw ValueError(fmt::format("tensor: shape {} needs {} strides, got {}", shape.to_string(),
                                 shape.rank(), byte_strides.size()));
  Strides strides{};
  std::copy(byte_strides.begin(), byte_strides.end(), strides.begin());
  check_alignment(data, dtype, shape, strides);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.wrapped_ = true;
  tensor.shape_ = shape;
  tensor.strides_ = strides;
  tensor.data_ = static_cast<const std::byte*>(data);
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::wrap(const void* data, DType dtype, const Shape& shape,
                    std::shared_ptr<const void> owner) {
  check_shape(shape);
  const Strides strides = packed_strides(shape, byte_width(dtype));
  return wrap(data, dtype, shape, std::span(strides).first(shape.dims().size()), std::move(owner));
}

bool Tensor::contiguous() const noexcept {
  std::int64_t expected = byte_width(dtype_);
  if (size() == 0) return true;
  for (int i = rank() - 1; i >= 0; --i) {
    if (shape_[i] != 1 && strides_[i] != expected) return false;
    expected *= shape_[i];
  }
  return true;
}

Tensor Tensor::packed() const { return contiguous() ? *this : copy(); }

Tensor Tensor::copy() const {
  Tensor result(dtype_, shape_);
  copy_elements(*this, result.mutable_bytes().data(), result.strides_);
  return result;
}

void Tensor::check_values(DType dtype) const {
  if (dtype != dtype_)
    throw TypeError(fmt::format("tensor: its elements are {}, asked for as {}", to_string(dtype_),
                                to_string(dtype)));
  if (!contiguous())
    throw ValueError(
        fmt::format("tensor: elements of shape {} do not stand side by side; take "
                    "packed() first",
                    shape_.to_string()));
}

std::span<const std::byte> Tensor::bytes() const {
  check_values(dtype_);
  return {data_, static_cast<std::size_t>(size() * byte_width(dtype_))};
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (wrapped_ || owner_.use_count() != 1 || !contiguous()) *this = copy();
  // Other owners of the memory read it before they released it. This copy synchronizes with that;
  // reading use_count alone does not.
  const std::shared_ptr<const void> noted = owner_;
  return {const_cast<std::byte*>(data_), static_cast<std::size_t>(size() * byte_width(dtype_))};
}

std::span<std::byte> Tensor::mutable_bytes(DType dtype) {
  if (dtype != dtype_) check_values(dtype);
  return mutable_bytes();
}

Tensor Tensor::reshaped(const Shape& shape) const {
  check_shape(shape);
  if (shape.num_elements() != size())
    throw ValueError(
        fmt::format("tensor: shape {} cannot become {}", shape_.to_string(), shape.to_string()));
  Tensor result = packed();
  result.shape_ = shape;
  result.strides_ = packed_strides(shape, byte_width(dtype_));
  return result;
}

Tensor Tensor::view(std::int64_t byte_offset, const Shape& shape, const Strides& strides) const {
  Tensor result = *this;
  if (shape.num_elements() > 0) result.data_ += byte_offset;
  result.shape_ = shape;
  result.strides_ = strides;
  return result;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Tensor x = a.packed(), y = b.packed();
  return std::ranges::equal(x.bytes(), y.bytes());
}

}  // namespace embertable
