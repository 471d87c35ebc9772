#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/data_file.h"
#include "checkpoint/reader.h"

namespace embertable::checkpoint {

/// A whole table for `digest`, wherever its rows live. `source` holds all its rows, in the table's
/// own order.
struct DigestTable {
  std::string name;
  std::int32_t dim = 0;
  std::vector<SavedSlot> slots;
  RowSource source;
};

/// Returns one hash of the values of tables and slots, 32 hexadecimal digits. The order of tables
/// and slots, files and sharding make no difference, nor does which NaN a NaN is.
/// docs/checkpoint_format.md gives the bytes that are hashed. Throws what `fill` throws.
std::string digest(std::vector<DigestTable> tables);

/// Returns the digest of a saved step. Throws IoError, DataLoss.
std::string digest(const Reader& reader);

}  // namespace embertable::checkpoint
