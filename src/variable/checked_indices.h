#pragma once

#include <cstdint>
#include <optional>

#include "base/memory.h"
#include "variable/row_addresses.h"

namespace embertable::sharded {

/// Where a check of indices failed.
struct IndexOutside {
  std::int64_t position = 0;

  /// The index, read again after the check: outside of the rows, unless another thread has changed
  /// it in between.
  std::int64_t index = 0;
};

/// Returns where the first index is that is not in [0, rows); nothing if there is none. Another
/// thread may be changing the indices.
std::optional<IndexOutside> find_outside(const RowIndices& indices, std::int64_t rows,
                                         Executor* executor);

/// Indices that no other thread changes.
struct CopiedIndices {
  RowIndices rows;  ///< int32 where the variable has fewer than 2^31 rows; valid until the reset of
                    ///< `scratch`
  std::optional<IndexOutside> outside;  ///< what find_outside returns; `rows` is then unspecified
};

/// Copies and checks the indices in one pass, so that the copy holds what was checked. Takes the
/// memory from `scratch`; throws IoError if there is none.
CopiedIndices copy_indices(const RowIndices& indices, std::int64_t rows, Executor* executor,
                           Arena& scratch);

}  // namespace embertable::sharded
