#pragma once

#include <cstddef>
#include <cstdint>

namespace embertable::bench {

/// One worker's part of reading all rows that a batch looks up: an equal share of every table's
/// ids.
struct GatherPart {
  const float* const* rows;  ///< [tables]
  std::size_t tables;
  const std::int64_t* ids;
  const std::size_t* first;  ///< [tables + 1], into ids
  std::size_t worker;
  std::size_t workers;
  std::size_t distance;  ///< rows between the prefetch and the read
  float* out;            ///< [out_rows, dim], written evenly over the ids; or null
  std::size_t out_rows;
};

/// One worker's part of changing all rows that a batch names.
struct UpdatePart {
  float* const* rows;   ///< [tables]
  float* const* slots;  ///< [tables], one float a row; or null: slots and gradients stay untouched
  std::size_t tables;
  const std::uint32_t* named;
  const std::size_t* first;  ///< [tables + 1], into named
  std::size_t worker;
  std::size_t workers;
  std::size_t distance;
  const float* gradients;  ///< [gradient_rows, dim], read evenly over the rows
  std::size_t gradient_rows;
};

/// The loops for one dim and the widest vectors that the CPU has. Return something that depends on
/// all that was read.
struct LimitKernels {
  float (*gather)(const GatherPart& part);
  float (*update)(const UpdatePart& part);
};

/// Throws std::invalid_argument unless the dim is 16, 32, 64 or 256.
const LimitKernels& limit_kernels(std::int32_t dim);

}  // namespace embertable::bench
