#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/level.h"

namespace embertable::bench {

/// How rows are fetched before they are read: how many rows ahead, and into which cache.
struct FetchAhead {
  std::size_t rows;
  bool to_level2 = false;  ///< into the second-level cache, not the first
};

/// One worker's part of reading the rows that one feature looks up.
struct BareGather {
  const float* records;  ///< row r starts at records + r * record_floats
  std::size_t record_floats;
  std::size_t dim;          ///< floats that are read of each row
  const std::int64_t* ids;  ///< [count]
  std::size_t count;
  FetchAhead ahead;
  std::size_t out_dim = 0;
  float* out = nullptr;      ///< [out_rows, out_dim], written evenly over the ids
  std::size_t out_rows = 0;  ///< 0: nothing is written
};

/// One worker's part of reading and writing rows with their slots, each once.
struct BareUpdate {
  float* records;  ///< row r starts at records + r * record_floats
  std::size_t record_floats;
  std::size_t floats;                 ///< floats of a record that change, with its slots
  float* const* row_slots = nullptr;  ///< [num_row_slots], arrays of one number a row
  std::size_t num_row_slots = 0;
  const std::uint32_t* rows;  ///< [count]
  std::size_t count;
  FetchAhead ahead;
  std::size_t dim;                   ///< floats of a gradient
  const float* gradients = nullptr;  ///< [gradient_rows, dim], read evenly over the rows
  std::size_t gradient_rows = 0;     ///< 0: nothing is read
};

/// Run the loops, which only access memory. Return a number that depends on everything that was
/// read. Rows keep their values, because what is added to them is too small to change them.
float bare_gather(const BareGather& part, SimdLevel level) noexcept;
float bare_update(const BareUpdate& part, SimdLevel level) noexcept;

/// Divides and takes roots: for each of `floats` numbers (a multiple of 16) in the nearest cache,
/// `divisions` divisions and `roots` square roots, none of which waits for another.
float bare_divide(const float* numbers, std::size_t floats, int divisions, int roots,
                  SimdLevel level) noexcept;

}  // namespace embertable::bench
