#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/batch.h"
#include "embertable/variables/embedding_lookup.h"
#include "embertable/variables/tensor.h"
#include "variable/row_addresses.h"
#include "variable/row_locator.h"

namespace embertable::sharded {

/// The rows that a lookup reads, wherever the parts of their table are. Shares the parts' memory.
class LookupRows {
 public:
  /// Throws ValueError for no parts, rank 0, different dtypes or rows.
  LookupRows(const LookupParams& params, Sharding strategy);
  LookupRows(const LookupRows&) = delete;
  LookupRows& operator=(const LookupRows&) = delete;

  DType dtype() const noexcept { return parts_.front().dtype(); }

  /// Returns the shape of one row.
  const Shape& row_shape() const noexcept { return row_shape_; }
  std::int64_t width() const noexcept { return row_shape_.num_elements(); }
  std::int64_t row_bytes() const noexcept { return width() * byte_width(dtype()); }

  /// Returns the addresses of rows, which are numbered through all parts, one after the other.
  const RowAddresses& addresses() const noexcept { return addresses_; }

  /// Returns the rows of ids in that numbering: the ids themselves, or a copy in `memory`. Throws
  /// IndexError naming an id that no row has, its position (positions[i], or i if there are none)
  /// and where it would be.
  RowIndices rows_of(IntegerSpan ids, std::span<const std::int64_t> positions,
                     std::vector<std::int64_t>& memory) const;

 private:
  bool has(std::int64_t id) const noexcept;
  [[noreturn]] void refuse(std::int64_t id, std::int64_t position) const;
  std::string part_text(std::size_t part) const;

  std::string subject_;
  std::vector<std::string> part_names_;
  std::vector<Tensor> parts_;
  Sharding strategy_;
  Shape row_shape_;
  RowLocator locator_;
  RowAddresses addresses_;
};

/// Throws ValueError unless a lookup with these options accepts a table of that dtype.
void check_max_norm(const EmbeddingLookupOptions& options, DType dtype);

/// Multiplies each of the rows, [n, width] packed, by max_norm / max(|x|, max_norm).
void limit_norms(Tensor& rows, std::int64_t width, double max_norm, Executor* executor);

}  // namespace embertable::sharded
