#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "embertable/export.h"

namespace embertable {

class CheckpointRun;

namespace checkpoint {
class OpenRun;
const OpenRun& open_run(const CheckpointRun& run);
}  // namespace checkpoint

/// A run directory, open for saving: as long as this lives no other process, and no other object of
/// this one, saves there. Moves; what is moved from may only be assigned to or destroyed. Saves and
/// `keep` through one object follow each other, whatever threads call.
class EMBERTABLE_API CheckpointRun {
 public:
  /// Makes the directory where it is missing. Throws StateError naming the process that holds it,
  /// IoError.
  explicit CheckpointRun(std::filesystem::path directory);
  CheckpointRun(CheckpointRun&&) noexcept;
  CheckpointRun& operator=(CheckpointRun&&) noexcept;
  ~CheckpointRun();

  const std::filesystem::path& directory() const noexcept;

  /// Saved there, rising, whether or not they can be opened. Throws IoError.
  std::vector<std::int64_t> steps() const;

  /// Removes the steps below the `newest` highest ones that can be opened; those stay, as does what
  /// is above them and cannot be opened. Interrupted anywhere, a step is whole or gone. Throws
  /// ValueError unless newest >= 1; IoError.
  void keep(std::int64_t newest);

 private:
  friend class DirectEmbedding;
  friend class Embedding;
  friend const checkpoint::OpenRun& checkpoint::open_run(const CheckpointRun& run);
  std::unique_ptr<checkpoint::OpenRun> run_;
};

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
