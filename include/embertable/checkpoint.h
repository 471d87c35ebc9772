#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "embertable/export.h"

namespace embertable {

/// An array of the caller's, of any type that `.safetensors` knows.
struct DenseTensor {
  /// BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, BF16, I32, U32, F32, I64, U64 or F64.
  std::string dtype = "F32";

  /// Dims >= 0; empty for a scalar.
  std::vector<std::int64_t> shape;

  /// Row-major, little-endian.
  std::string bytes;

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

/// What a caller keeps in a checkpoint beside the tables, of the same step and in the same commit.
/// Names are UTF-8 and not "__metadata__".
struct CallerState {
  /// One JSON value in UTF-8, given back byte for byte.
  std::string json = "null";

  /// Dense weights and the like, which other tools can read.
  std::map<std::string, DenseTensor> tensors;

  /// Bytes that only the caller understands.
  std::map<std::string, std::string> blobs;

  friend bool operator==(const CallerState&, const CallerState&) = default;
};

/// A checkpoint without its tables.
struct SavedState {
  std::int64_t step = 0;
  CallerState caller;
};

// Below, `path` is the directory of one step, or a run's directory, of which the latest step is
// taken: the highest one that is complete and whose manifest can be read. All throw IoError if
// there is none or a newer format, DataLoss naming file and block for what is damaged.

/// The directory of the step that `path` means.
EMBERTABLE_API std::filesystem::path find_checkpoint(const std::filesystem::path& path);

EMBERTABLE_API SavedState read_saved_state(const std::filesystem::path& path);

/// One hash of all tables and slots, 32 hexadecimal digits: equal for equal values, whatever the
/// files and sharding.
EMBERTABLE_API std::string digest_checkpoint(const std::filesystem::path& path);

/// Reads every byte and checks every checksum.
EMBERTABLE_API void verify_checkpoint(const std::filesystem::path& path);

}  // namespace embertable
