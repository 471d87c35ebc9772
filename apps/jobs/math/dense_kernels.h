#pragma once

#include <cstdint>

#include "kernels/level.h"

namespace embertable::jobs {

/// c[m][n] = scale * start[m][n] + a[m][0] * b[0][n] + a[m][1] * b[1][n] + ..., in that order, each
/// operation rounded to binary32: the same bits at every SIMD level and with every tiling.
struct Product {
  std::int64_t rows = 0;     ///< m < rows
  std::int64_t columns = 0;  ///< n < columns
  std::int64_t depth = 0;    ///< terms of a sum
  const float* a = nullptr;  ///< a[m][k] is a[m * a_row + k * a_depth]
  std::int64_t a_row = 0;
  std::int64_t a_depth = 1;
  const float* b = nullptr;  ///< b[k][n] is b[k * b_depth + n]
  std::int64_t b_depth = 0;
  float* c = nullptr;  ///< c[m][n] is c[m * c_row + n]; overlaps neither a nor b
  std::int64_t c_row = 0;

  const float* start = nullptr;  ///< null: zeros; may be c
  std::int64_t start_row = 0;    ///< 0: the same for every m
  float scale = 1;

  bool relu = false;            ///< results below zero become zero
  const float* gate = nullptr;  ///< if not null, a result whose gate is not above zero becomes zero
  std::int64_t gate_row = 0;
};
void product(const Product& p, SimdLevel level) noexcept;

/// Computes out[m] = out[m] + <a[m], b>, the product summed in 16 lanes, folded by halves.
struct AddDots {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const float* a = nullptr;  ///< [rows, columns]
  const float* b = nullptr;  ///< [columns], or null: ones
  float* out = nullptr;      ///< [rows]
};
void add_dots(const AddDots& args, SimdLevel level) noexcept;

/// One step of Adagrad:
///   g = gradient[0] + gradient[1] + ... + regularization * w,   s = s + g * g,
///   w = w - rate * g / sqrt(s)
/// where s is 0 the weight stays.
struct AdagradStep {
  std::int64_t size = 0;
  float* weights = nullptr;          ///< [size]
  float* accumulators = nullptr;     ///< [size], s
  const float* gradients = nullptr;  ///< [parts, size], `part_stride` floats apart
  std::int64_t parts = 0;            ///< >= 1
  std::int64_t part_stride = 0;
  float rate = 0;
  float regularization = 0;
};
void adagrad_step(const AdagradStep& args, SimdLevel level) noexcept;

/// Computes x[m][n] = slope[m] + regularization * x[m][n]: the gradients of rows whose sum is a
/// logit.
struct SlopeRows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float* x = nullptr;             ///< [rows, columns]
  const float* slopes = nullptr;  ///< [rows]
  float regularization = 0;
};
void slope_rows(const SlopeRows& args, SimdLevel level) noexcept;

}  // namespace embertable::jobs
