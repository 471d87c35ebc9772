#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/level.h"

namespace embertable::bench {

/// One worker's part of reading and writing rows with their slots, each once.
struct RecordPart {
  float* records;           ///< row r with its full-size slots starts at r * floats
  std::size_t floats;       ///< a multiple of 16
  float* const* row_slots;  ///< [num_row_slots], one number a row each
  std::size_t num_row_slots;
  const std::uint32_t* rows;  ///< [count]
  std::size_t count;
  std::size_t distance;         ///< rows between the prefetch and the read
  const float* gradients;       ///< [count, gradient_floats], read too; or null
  std::size_t gradient_floats;  ///< a multiple of 16
};

/// Returns something that depends on all that was read.
float update_records(const RecordPart& part, SimdLevel level) noexcept;

/// Passes over `floats` numbers (a multiple of 16) that the nearest cache holds, with so many
/// divisions and square roots for each of them, none of which waits for another.
float divide(const float* numbers, std::size_t floats, int divisions, int roots,
             SimdLevel level) noexcept;

}  // namespace embertable::bench
