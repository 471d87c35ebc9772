#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/level.h"

namespace embertable::bench {

/// One worker's part of reading the rows of one table that a feature looks up.
struct BareGather {
  const float* records;  ///< row r starts at r * record_floats
  std::size_t record_floats;
  std::size_t dim;          ///< any
  const std::int64_t* ids;  ///< [count]
  std::size_t count;
  std::size_t distance;  ///< rows between the prefetch and the read
  float* out;            ///< [out_floats], written evenly over the ids
  std::size_t out_floats;
};

/// One worker's part of reading and writing rows with their slots, each once.
struct BareUpdate {
  float* records;
  std::size_t record_floats;  ///< row and full-size slots
  float* const* row_slots;    ///< [num_row_slots], one number a row each
  std::size_t num_row_slots;
  const std::uint32_t* rows;  ///< [count]
  std::size_t count;
  std::size_t distance;
  const float* gradients;  ///< [gradient_floats], read evenly over the rows
  std::size_t gradient_floats;
};

/// Return something that depends on all that was read.
float bare_gather(const BareGather& part, SimdLevel level) noexcept;
float bare_update(const BareUpdate& part, SimdLevel level) noexcept;

}  // namespace embertable::bench
