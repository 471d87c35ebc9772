#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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

  /// Dims >= 0, at most 8 of them; empty for a scalar.
  std::vector<std::int64_t> shape;

  /// Elements, row-major, little-endian.
  std::string bytes;

  /// Returns a copy of an array of float, double, std::int32_t or the like. Without a shape it is a
  /// vector. Throws ValueError if the shape has another number of elements.
  template <class T>
  static DenseTensor from(std::span<const T> values, std::vector<std::int64_t> shape);
  template <class T>
  static DenseTensor from(std::span<const T> values) {
    return from(values, {static_cast<std::int64_t>(values.size())});
  }
  template <class T>
  static DenseTensor from(const std::vector<T>& values) {
    return from(std::span<const T>(values));
  }

  /// Returns the elements. Throws what `require` throws for T.
  template <class T>
  std::vector<T> as() const;

  /// Throws TypeError unless elements are of this type, ValueError unless there are as many as the
  /// shape says.
  EMBERTABLE_API void require(std::string_view type) const;

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

/// Returns what DenseTensor calls an element type.
template <class T>
constexpr const char* dtype_name() {
  constexpr bool is_float = std::is_floating_point_v<T>, is_signed = std::is_signed_v<T>;
  static_assert((is_float && sizeof(T) >= 4) || std::is_integral_v<T>, "an array of numbers");
  if constexpr (std::is_same_v<T, bool>) return "BOOL";
  if constexpr (sizeof(T) == 1) return is_signed ? "I8" : "U8";
  if constexpr (sizeof(T) == 2) return is_signed ? "I16" : "U16";
  if constexpr (sizeof(T) == 4) return is_float ? "F32" : is_signed ? "I32" : "U32";
  return is_float ? "F64" : is_signed ? "I64" : "U64";
}

template <class T>
DenseTensor DenseTensor::from(std::span<const T> values, std::vector<std::int64_t> shape) {
  DenseTensor tensor{.dtype = dtype_name<T>(), .shape = std::move(shape), .bytes = {}};
  const auto bytes = std::as_bytes(values);
  tensor.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  tensor.require(tensor.dtype);
  return tensor;
}

template <class T>
std::vector<T> DenseTensor::as() const {
  require(dtype_name<T>());
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

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
// step: the highest one that is complete and whose manifest can be read. Functions of it throw
// NotFound, an IoError, if there is none, IoError if its format is newer, DataLoss naming file and
// block for damage.

/// Returns the directory that a step of a run has, "<run>/step_000000001234", whether or not the
/// step is there. Throws ValueError unless step >= 0.
EMBERTABLE_API std::filesystem::path step_directory(const std::filesystem::path& run,
                                                    std::int64_t step);

/// Returns the directory of the step that `path` means.
EMBERTABLE_API std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Returns the step's number and what the caller saved with it.
EMBERTABLE_API SavedState read_saved_state(const std::filesystem::path& path);

/// Returns one hash of all tables and slots, 32 hexadecimal digits: equal for equal values,
/// whatever the files and sharding. Every NaN counts as the same value.
EMBERTABLE_API std::string digest_checkpoint(const std::filesystem::path& path);

/// Reads every byte and checks every checksum: of a run those of its highest step, however damaged.
EMBERTABLE_API void verify_checkpoint(const std::filesystem::path& path);

}  // namespace embertable
