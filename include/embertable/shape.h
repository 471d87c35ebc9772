#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "embertable/export.h"

namespace embertable {

/// The dims of an array, possibly not all known: a small value, no heap. A default-constructed
/// shape has unknown rank; the shape of rank 0 is `Shape::scalar()`.
class EMBERTABLE_API Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr std::int64_t kUnknown = -1;

  Shape() = default;

  /// Dims >= 0, or kUnknown. Throws ValueError beyond kMaxRank dims or for another negative dim.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);
  static Shape scalar();

  bool has_rank() const noexcept { return rank_ >= 0; }

  /// Number of dims, or -1 if unknown.
  int rank() const noexcept { return rank_; }

  /// 0 <= axis < rank.
  std::int64_t operator[](int axis) const noexcept { return dims_[axis]; }
  std::span<const std::int64_t> dims() const noexcept;

  /// True if the rank and every dim are known.
  bool fully_defined() const noexcept;

  /// Product of the dims, 1 for rank 0; the largest int64 where it is greater. Only for fully
  /// defined shapes.
  std::int64_t num_elements() const noexcept;

  Shape with_leading(std::int64_t dim) const;  ///< the same with axis 0 replaced; rank >= 1
  Shape without_last() const;                  ///< rank >= 1
  Shape append(std::int64_t dim) const;        ///< one more axis at the end; unknown rank stays so

  /// "(2, 4)", "(2, ?)", "(2)", "()"; "(unknown rank)".
  std::string to_string() const;

  /// Equal ranks and dims; unknown equals unknown.
  friend EMBERTABLE_API bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = -1;
};

}  // namespace embertable
