#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "embertable/export.h"

namespace embertable {

/// Dims of an array, some of them possibly unknown: a small value that allocates nothing. A
/// default-constructed shape has unknown rank; the shape of rank 0 is `Shape::scalar()`.
class EMBERTABLE_API Shape {
 public:
  static constexpr int kMaxRank = 8;
  static constexpr std::int64_t kUnknown = -1;

  Shape() = default;

  /// Takes dims that are >= 0 or kUnknown. Throws ValueError beyond kMaxRank dims or for another
  /// negative dim.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);
  static Shape scalar();

  bool has_rank() const noexcept { return rank_ >= 0; }

  /// Number of dims, or -1 if unknown.
  int rank() const noexcept { return rank_; }

  /// Returns one dim. Requires: 0 <= axis < rank.
  std::int64_t operator[](int axis) const noexcept { return dims_[axis]; }
  std::span<const std::int64_t> dims() const noexcept;

  /// True if the rank and every dim are known.
  bool fully_defined() const noexcept;

  /// Returns the product of the dims, 1 for rank 0; the largest int64 where the product is greater.
  /// Requires: the shape is fully defined.
  std::int64_t num_elements() const noexcept;

  Shape with_leading(std::int64_t dim) const;  ///< replaces axis 0; requires rank >= 1
  Shape without_last() const;                  ///< removes the last axis; requires rank >= 1
  Shape append(std::int64_t dim) const;        ///< adds a last axis; an unknown rank stays unknown

  /// Returns a text such as "(2, 4)", "(2, ?)", "(2)", "()" or "(unknown rank)".
  std::string to_string() const;

  /// True for equal ranks and dims; unknown equals unknown.
  friend EMBERTABLE_API bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = -1;
};

}  // namespace embertable
