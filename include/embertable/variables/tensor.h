#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "embertable/shape.h"
#include "embertable/version.h"

namespace embertable {

/// Element type of a tensor.
enum class DType : std::uint8_t { kFloat32, kFloat64, kInt32, kInt64, kBool, kBFloat16, kFloat16 };

/// Every element type.
inline constexpr std::array<DType, 7> kDTypes = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                                 DType::kInt64,   DType::kBool,    DType::kBFloat16,
                                                 DType::kFloat16};

/// Returns the bytes per element.
EMBERTABLE_API std::int64_t byte_width(DType dtype) noexcept;

/// Returns "float32", "float64", "int32", "int64", "bool", "bfloat16" or "float16"; "?" for a value
/// that is no dtype.
EMBERTABLE_API std::string_view to_string(DType dtype) noexcept;

/// A number made of the upper half of a binary32's bits. Conversion rounds to nearest even; NaN
/// stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  EMBERTABLE_API explicit BFloat16(float x) noexcept;
  explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  friend bool operator==(BFloat16, BFloat16) = default;  ///< the same bits
};

/// An IEEE binary16 number. Conversion rounds to nearest even, denormals and infinities included;
/// NaN stays NaN.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  EMBERTABLE_API explicit Float16(float x) noexcept;
  EMBERTABLE_API explicit operator float() const noexcept;
  friend bool operator==(Float16, Float16) = default;  ///< the same bits
};

/// Returns the DType of a C++ type: float, double, int32_t, int64_t, bool, BFloat16 or Float16.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return DType::kInt32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return DType::kInt64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DType::kBFloat16;
  } else {
    static_assert(std::is_same_v<T, Float16>);
    return DType::kFloat16;
  }
}

/// An array of numbers of any rank. A value: copying one copies no elements, and no tensor changes
/// because another does; the first change through `mutable_values` copies shared memory. The one
/// exception is caller-owned memory (`wrap`): the owner's writes are visible.
///
/// Different tensors may be used from different threads, even if they share memory; one tensor may
/// be read from several.
class EMBERTABLE_API Tensor {
 public:
  /// Bytes from an element to the next one along each axis. They may be 0 or negative.
  using Strides = std::array<std::int64_t, Shape::kMaxRank>;

  /// Makes a tensor of shape (0), float32.
  Tensor() noexcept = default;

  /// Makes a tensor of zeros. Throws ValueError unless the shape is fully defined, and for a value
  /// that is no dtype; IoError if the memory cannot be had.
  Tensor(DType dtype, const Shape& shape);

  /// Copies `values`, row-major. Throws ValueError unless their number is that of the shape's
  /// elements.
  template <class T>
  static Tensor of(std::span<const T> values, const Shape& shape) {
    return copy_of(values.data(), values.size(), dtype_of<T>(), shape);
  }
  template <class T>
  static Tensor of(std::initializer_list<T> values, const Shape& shape) {
    return copy_of(values.begin(), values.size(), dtype_of<T>(), shape);
  }

  /// Makes a tensor of rank 0 and the dtype of T.
  template <class T>
  static Tensor scalar(T value) {
    return copy_of(&value, 1, dtype_of<T>(), Shape::scalar());
  }

  /// Wraps caller-owned memory, which is never copied and never written: the element (i, j, ...) is
  /// at data + i * byte_strides[0] + j * byte_strides[1] + .... `owner` is kept as long as a tensor
  /// sees the memory; null: the caller keeps the memory alive. Throws ValueError unless there is a
  /// stride for each axis and every element is aligned for its type, and for a value that is no
  /// dtype.
  ///
  /// The memory must not change while a call reads it. A call that notices a change of its indices
  /// throws IndexError and has changed nothing; other changed elements are taken as they were
  /// before or after.
  static Tensor wrap(const void* data, DType dtype, const Shape& shape,
                     std::span<const std::int64_t> byte_strides, std::shared_ptr<const void> owner);

  /// Wraps caller-owned elements that are row-major without gaps, under the same rules.
  static Tensor wrap(const void* data, DType dtype, const Shape& shape,
                     std::shared_ptr<const void> owner);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.rank(); }

  /// Number of elements.
  std::int64_t size() const noexcept { return shape_.num_elements(); }

  /// Returns the strides; only the first rank() are meaningful.
  const Strides& byte_strides() const noexcept { return strides_; }

  /// Returns the address of element (0, 0, ...); it is not to be read if there are no elements.
  const std::byte* data() const noexcept { return data_; }

  /// Returns the object that keeps the memory alive; null if the caller does.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  /// True if the memory is caller-owned, so that its contents may change.
  bool wrapped() const noexcept { return wrapped_; }

  /// True if the elements are row-major without gaps. Always true without elements.
  bool contiguous() const noexcept;

  /// Returns this tensor if it is contiguous, else a contiguous copy.
  Tensor packed() const;

  /// Returns a copy in memory of its own, row-major without gaps.
  Tensor copy() const;

  /// Returns the elements, row-major, valid as long as a tensor sees this memory. Throws TypeError
  /// for another dtype, ValueError unless contiguous.
  template <class T>
  std::span<const T> values() const {
    check_values(dtype_of<T>());
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(size())};
  }

  /// Returns the elements for writing, until this tensor is copied. They are copied first unless
  /// they are contiguous, not wrapped, and this tensor's alone. Throws TypeError for another dtype.
  template <class T>
  std::span<T> mutable_values() {
    return {reinterpret_cast<T*>(mutable_bytes(dtype_of<T>()).data()),
            static_cast<std::size_t>(size())};
  }

  /// Return the bytes of the elements of any dtype, row-major, under the rules of `values` and
  /// `mutable_values`.
  std::span<const std::byte> bytes() const;
  std::span<std::byte> mutable_bytes();

  /// Returns the same elements in the same order with another shape; shares memory if this is
  /// contiguous. Throws ValueError for another number of elements.
  Tensor reshaped(const Shape& shape) const;

  /// Returns a part of the same memory: elements from byte_offset on. Requires: the part lies
  /// within the memory; it is not checked.
  Tensor view(std::int64_t byte_offset, const Shape& shape, const Strides& strides) const;

 private:
  static Tensor copy_of(const void* values, std::size_t count, DType dtype, const Shape& shape);
  void check_values(DType dtype) const;
  std::span<std::byte> mutable_bytes(DType dtype);

  DType dtype_ = DType::kFloat32;
  bool wrapped_ = false;
  Shape shape_ = {0};
  Strides strides_{};
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// True if dtypes, shapes and the bits of all elements are the same.
EMBERTABLE_API bool identical(const Tensor& a, const Tensor& b);

}  // namespace embertable
