#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "embertable/version.h"

namespace embertable {

class CheckpointRun;
class EngineStrategy;

namespace checkpoint {
class OpenRun;
const OpenRun& open_run(const CheckpointRun& run);
}  // namespace checkpoint

/// A run directory that is open for saving: while this object lives, no other process, and no other
/// object of this one, saves there. Movable; a moved-from object may only be assigned to or
/// destroyed. Saves and calls of `keep` through one object run one after the other, whatever
/// threads make them.
class EMBERTABLE_API CheckpointRun {
 public:
  /// Creates the directory if it is missing. Throws StateError naming the process that holds it,
  /// IoError.
  explicit CheckpointRun(std::filesystem::path directory);

  /// Opens a run for engines of this strategy. If its hosts are processes, all of them call this
  /// and it is theirs: host 0 locks and changes it. Throws as above, on all hosts.
  CheckpointRun(std::filesystem::path directory, const EngineStrategy& strategy);
  CheckpointRun(CheckpointRun&&) noexcept;
  CheckpointRun& operator=(CheckpointRun&&) noexcept;
  ~CheckpointRun();

  const std::filesystem::path& directory() const noexcept;

  /// Returns the steps saved there, rising, whether or not they can be opened. Throws IoError.
  std::vector<std::int64_t> steps() const;

  /// Removes the steps below the `newest` highest ones that can be opened; those stay, and so does
  /// every higher step that cannot be opened. Interrupted at any point, each step is whole or gone.
  /// Throws ValueError unless newest >= 1; StateError in a function that a save of the same thread
  /// calls, such as a handler of a signal; IoError.
  void keep(std::int64_t newest);

 private:
  friend class DirectEmbedding;
  friend class Embedding;
  friend const checkpoint::OpenRun& checkpoint::open_run(const CheckpointRun& run);
  std::filesystem::path directory_;
  std::unique_ptr<checkpoint::OpenRun> run_;  ///< null on other hosts than the first
};

/// A caller-owned array of any type that `.safetensors` knows.
struct DenseTensor {
  /// Element type: BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, BF16, I32, U32, F32, I64, U64 or
  /// F64.
  std::string dtype = "F32";

  /// Dims >= 0; empty for a scalar.
  std::vector<std::int64_t> shape;

  /// Elements, row-major, little-endian.
  std::string bytes;

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

/// Data that a caller keeps in a checkpoint beside the tables, saved for the same step in the same
/// commit. Names are UTF-8 and not "__metadata__".
struct CallerState {
  /// One JSON value in UTF-8, returned byte for byte.
  std::string json = "null";

  /// Dense weights and the like, which other tools can read.
  std::map<std::string, DenseTensor> tensors;

  /// Bytes that only the caller understands.
  std::map<std::string, std::string> blobs;

  friend bool operator==(const CallerState&, const CallerState&) = default;
};

/// What a checkpoint holds besides its tables and id maps.
struct SavedState {
  std::int64_t step = 0;
  CallerState caller;
};

// Below, `path` is the directory of one step, or a run's directory, which stands for its latest
// step: the highest one that is complete and whose manifest can be read. All functions throw
// IoError if there is none or its format is newer, DataLoss naming file and block for damage.

/// Returns the directory of the step that `path` means.
EMBERTABLE_API std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Returns the step's number and what the caller saved with it.
EMBERTABLE_API SavedState read_saved_state(const std::filesystem::path& path);

/// Returns one hash of all tables and slots, 32 hexadecimal digits: equal for equal values,
/// whatever the files and sharding. Every NaN counts as the same value.
EMBERTABLE_API std::string digest_checkpoint(const std::filesystem::path& path);

/// Reads every byte and checks every checksum.
EMBERTABLE_API void verify_checkpoint(const std::filesystem::path& path);

}  // namespace embertable
