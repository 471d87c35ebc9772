#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "embertable/checkpoint.h"

namespace embertable::checkpoint {

/// Fills `out`, [rows, width] row-major, with rows first, first + 1, ... of one variable. Called on
/// the writing thread, and only during the call that was given it.
using FillRows = std::function<void(std::int64_t first, std::span<float> out)>;

/// The rows of one table or of one shard of it, wherever they live. fill[0] gives the parameters,
/// fill[1 + s] slot s of the table; widths are those of the table's variables.
struct RowSource {
  std::int64_t rows = 0;
  std::vector<FillRows> fill;
};

/// Returns "t00000-video-00002-of-00005.safetensors": a name for any table, in characters that
/// every file system accepts.
std::string table_file_name(std::int64_t table, const std::string& name, std::int32_t shard,
                            std::int32_t shards);

/// Writes and flushes one shard of table `manifest.tables[table]` into `directory`. `rows` says
/// which rows of the table `source` holds, in its order. Calls for different files may run at once.
/// Throws IoError and what `fill` throws.
FileRecord write_table_file(Directory& directory, const Manifest& manifest, std::int64_t table,
                            std::int32_t host, const Progression& rows, const RowSource& source);

/// Takes the next bytes of a tensor.
using WriteBytes = std::function<void(std::span<const std::byte> bytes)>;

/// A dense tensor, wherever its bytes are.
struct TensorSource {
  std::string dtype;
  std::vector<std::int64_t> shape;

  /// Passes all bytes, row-major, in pieces to the argument.
  std::function<void(const WriteBytes& write)> write;
};

/// Returns the source of a caller's tensor, which must outlive it. Throws ValueError naming the
/// tensor if it has too many axes, or if dtype, shape and size do not agree.
TensorSource source_of(const std::string& name, const DenseTensor& tensor);

/// Writes and flushes dense tensors, or byte strings by name, into `directory`. Requires: there is
/// at least one. Throws ValueError for a name that cannot be saved; IoError.
FileRecord write_tensors_file(Directory& directory, std::int64_t step,
                              const std::map<std::string, TensorSource>& tensors);
FileRecord write_bytes_file(Directory& directory, std::int64_t step, FileKind kind,
                            const std::map<std::string, std::string>& entries);

}  // namespace embertable::checkpoint
