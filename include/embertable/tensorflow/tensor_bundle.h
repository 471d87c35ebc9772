#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

namespace checkpoint {
class FileSystem;
}

/// Element type of a tensor in a tensor bundle: TensorFlow's DataType, of which a file may have any
/// number. Types without a name here are listed, but not read or written.
enum class BundleDType : std::int32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kUInt16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kUInt32 = 22,
  kUInt64 = 23,
};

/// Returns the bytes per element; 0 for strings and dtypes without a name.
EMBERTABLE_API std::int64_t byte_width(BundleDType dtype) noexcept;

/// Returns a text such as "float32", "string" or "dtype 42".
EMBERTABLE_API std::string to_string(BundleDType dtype);

/// Returns the dtype that a Tensor's elements have in a bundle.
EMBERTABLE_API BundleDType to_bundle_dtype(DType dtype) noexcept;

/// Returns the dtype of a Tensor, or nothing if a Tensor cannot hold such elements.
EMBERTABLE_API std::optional<DType> to_dtype(BundleDType dtype) noexcept;

/// The part of one axis that a slice takes.
struct SliceExtent {
  std::int64_t start = 0;
  std::int64_t length = kWhole;  ///< kWhole: all of the axis, and start is 0

  static constexpr std::int64_t kWhole = -1;
  friend bool operator==(const SliceExtent&, const SliceExtent&) = default;
};

/// A box within a tensor, by axis.
using TensorSlice = std::vector<SliceExtent>;

/// A slice with the shape of its whole. Its text is "4 3 1,2:0,3" for rows 1 and 2 of a tensor of
/// shape [4, 3]; "-" stands for a whole axis. Source: TF variables.py, SaveSliceInfo.spec.
struct SliceSpec {
  std::vector<std::int64_t> full_shape;
  TensorSlice slice;
  friend bool operator==(const SliceSpec&, const SliceSpec&) = default;
};

/// Parses a text. Throws ValueError for a text that is no slice, for more or fewer axes than the
/// shape has, for a length below 1 and a slice that leaves the shape.
EMBERTABLE_API SliceSpec parse_slice_spec(std::string_view text);

/// Reverses parse_slice_spec.
EMBERTABLE_API std::string to_string(const SliceSpec& spec);

/// Describes one tensor of a bundle.
struct BundleTensor {
  std::string key;
  BundleDType dtype = BundleDType::kFloat32;
  std::vector<std::int64_t> shape;  ///< shape of the whole tensor
  std::vector<TensorSlice> slices;  ///< in the file's order; empty: stored whole
};

/// The dtype and shape that a reader of a tensor expects.
struct ExpectedTensor {
  std::string key;
  BundleDType dtype = BundleDType::kFloat32;
  std::vector<std::int64_t> shape;  ///< shape of the whole tensor
};

/// A checkpoint of TensorFlow's format V2, opened for reading: `<prefix>.index` and the data files
/// `<prefix>.data-00000-of-00002` and so on, in any number, byte order, alignment and division into
/// slices. The index is checked at once, data when they are read: no byte is returned whose tensor
/// or slice fails its checksum. Claimed sizes are compared with the size of files before memory is
/// taken for them.
///
/// Movable; a moved-from object may only be assigned to or destroyed. Calls from several threads
/// run one after the other.
///
/// Everything that reads throws IoError for a failing disk and DataLoss for damage, naming file and
/// tensor. Source: TF core/util/tensor_bundle, tensor_slice_set.
class EMBERTABLE_API TensorBundleReader {
 public:
  /// Opens a checkpoint. Throws IoError if there is no index, ValueError for a version that is not
  /// supported, DataLoss.
  explicit TensorBundleReader(const std::filesystem::path& prefix);

  /// Reads through `files` instead of the operating system. `files` must outlive this object.
  TensorBundleReader(checkpoint::FileSystem& files, const std::filesystem::path& prefix);

  TensorBundleReader(TensorBundleReader&&) noexcept;
  TensorBundleReader& operator=(TensorBundleReader&&) noexcept;
  ~TensorBundleReader();

  const std::filesystem::path& prefix() const noexcept;

  /// Returns the number of data files that the index states.
  std::int64_t num_data_files() const noexcept;

  /// Returns the names of tensors in rising order; the parts of a sliced one are not listed.
  std::vector<std::string> keys() const;

  bool contains(std::string_view key) const;

  // All functions below throw KeyError for an unknown key; those that return elements throw
  // NotImplemented for a dtype without a name, TypeError for strings where numbers are wanted or
  // the reverse, and ValueError if the slices of a tensor leave out a part of what is wanted.

  /// Returns the dtype, shape and slices of a tensor.
  BundleTensor describe(const std::string& key) const;

  /// Checks dtypes and shapes. Throws ValueError listing every tensor of another dtype, or else
  /// every one of another shape.
  void require(std::span<const ExpectedTensor> expected) const;

  /// Returns the whole tensor, row-major, little-endian.
  std::vector<std::byte> read(const std::string& key) const;

  /// Reads a box of the tensor, row-major, little-endian, into `out`. Throws ValueError for another
  /// full shape, a slice that leaves it, or an `out` of another size. After an error `out` is
  /// unspecified.
  void read(const std::string& key, const SliceSpec& wanted, std::span<std::byte> out) const;

  /// Returns such a box. Throws ValueError for another full shape or a slice that leaves it.
  std::vector<std::byte> read(const std::string& key, const SliceSpec& wanted) const;

  /// Reads rows first, first + 1, ... of a tensor of rank 1 or more: `out` holds `count` whole
  /// ones. A stored slice is read as a whole, and its checksum compared, when the first of its
  /// rows is wanted.
  void read_rows(const std::string& key, std::int64_t first, std::int64_t count,
                 std::span<std::byte> out) const;

  /// Returns the whole tensor. Throws TypeError for a dtype that a Tensor does not have, ValueError
  /// for a rank above its limit.
  Tensor read_tensor(const std::string& key) const;

  /// Returns the strings of a tensor, row-major.
  std::vector<std::string> read_strings(const std::string& key) const;

  /// Reads every tensor and slice, of dtypes without a name too, and compares every checksum. Only
  /// variants are passed over: theirs are not sums of stored bytes.
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Options of a TensorBundleWriter.
struct TensorBundleOptions {
  /// Alignment of every tensor's data, 1..kMaxAlignment, with zeros in between; each gap is smaller
  /// than the alignment.
  std::int64_t alignment = 1;

  static constexpr std::int64_t kMaxAlignment = 1 << 20;
};

/// Writes a checkpoint of TensorFlow's format V2, byte for byte like TensorFlow, with one data
/// file. The prefix shows no new checkpoint until `finish` returns. A tensor that is cut into
/// slices is added slice by slice, in any order and with other tensors between.
///
/// Use it from one thread. Errors leave the writer as it was, except IoError and exceptions of a
/// `fill`: then it is closed, and what it wrote is gone.
class EMBERTABLE_API TensorBundleWriter {
 public:
  /// Begins the data file under a temporary name. Throws ValueError for an alignment
  /// outside of 1..kMaxAlignment, IoError.
  explicit TensorBundleWriter(const std::filesystem::path& prefix,
                              TensorBundleOptions options = {});

  /// Writes through `files` instead of the operating system. `files` must outlive this object.
  TensorBundleWriter(checkpoint::FileSystem& files, const std::filesystem::path& prefix,
                     TensorBundleOptions options = {});

  /// Removes what was written, unless `finish` was called.
  ~TensorBundleWriter();
  TensorBundleWriter(TensorBundleWriter&&) noexcept;
  TensorBundleWriter& operator=(TensorBundleWriter&&) noexcept;

  // All functions below throw StateError after `finish`; ValueError for an empty key or one that
  // begins with a zero byte, a repeated key, an invalid shape or slice, and bytes that do not fill
  // it; NotImplemented for a dtype without a name, TypeError for strings passed as bytes.

  /// Add a whole tensor: `bytes` and `strings` are its elements, row-major, and bytes are
  /// little-endian.
  void add(const std::string& key, BundleDType dtype, std::span<const std::int64_t> shape,
           std::span<const std::byte> bytes);
  void add(const std::string& key, const Tensor& tensor);
  void add_strings(const std::string& key, std::span<const std::int64_t> shape,
                   std::span<const std::string> strings);

  /// Adds one slice; `bytes` are those of its box. A slice that covers the whole is stored like
  /// `add` does. Also throws ValueError if dtype or full shape differ from those of earlier slices,
  /// and for an overlap.
  void add_slice(const std::string& key, BundleDType dtype, const SliceSpec& spec,
                 std::span<const std::byte> bytes);

  /// A function that fills `out` with rows of the box from `first` on, as many as fit (rank 0: one
  /// row of one element); it is called in order.
  using Fill = std::function<void(std::int64_t first, std::span<std::byte> out)>;

  /// Adds a tensor or a slice that need not be in memory as a whole. Also throws ValueError for an
  /// empty function.
  void add_slice(const std::string& key, BundleDType dtype, const SliceSpec& spec,
                 const Fill& fill);

  /// Flushes everything to disk and then replaces what the prefix had. Throws IoError; then the
  /// prefix has its old checkpoint, or the new one if only the last flush failed. It has none only
  /// if names that had changed could not be changed back.
  ///
  /// A kill or a loss of power leaves the old checkpoint or the new one. It may leave none if the
  /// old one has one data file too; the old one then has another name beside the prefix.
  ///
  /// Writers of one prefix, in any process, wait for each other here: the last one's checkpoint
  /// stays. Throws ValueError for an index that no reader would read.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the prefix at which one node writes a part that `merge_tensor_bundles` joins:
/// "<prefix>_temp/part-00001-of-00004" for node 1 of 4. Throws ValueError unless 0 <= part < parts.
EMBERTABLE_API std::filesystem::path part_prefix(const std::filesystem::path& prefix,
                                                 std::int32_t part, std::int32_t parts);

/// Options of `merge_tensor_bundles`.
struct MergeOptions {
  /// Skips parts whose index is missing, as long as one exists.
  bool allow_missing = false;
};

/// Joins checkpoints into one: their data files get its names, in the order of `parts`; their
/// indexes, and directories that are then empty, go when the new index is there. Parts without
/// tensors add no data file. What the prefix had is replaced as by `TensorBundleWriter::finish`,
/// and wherever the old checkpoint stays after an error, the parts stay whole.
///
/// Throws ValueError for parts of other byte order or version, a tensor that two parts have, slices
/// that overlap, a part that is the whole, through links too, a data file that is a link, and a
/// missing part; DataLoss; IoError.
EMBERTABLE_API void merge_tensor_bundles(std::span<const std::filesystem::path> parts,
                                         const std::filesystem::path& prefix,
                                         MergeOptions options = {});

/// Joins them through `files` instead of the operating system.
EMBERTABLE_API void merge_tensor_bundles(checkpoint::FileSystem& files,
                                         std::span<const std::filesystem::path> parts,
                                         const std::filesystem::path& prefix,
                                         MergeOptions options = {});

/// Writes the text file `checkpoint` of a directory, by which TensorFlow finds the latest
/// checkpoint there: `name` is a prefix in this directory. A file of that name is replaced in one
/// go. Throws IoError; ValueError for a name that is too long to be read.
EMBERTABLE_API void write_bundle_state(const std::filesystem::path& directory,
                                       const std::string& name);

/// Returns the prefix that this file names as the latest, if its index is there; else nothing.
/// Throws IoError, DataLoss for a file that names none.
EMBERTABLE_API std::optional<std::filesystem::path> latest_bundle(
    const std::filesystem::path& directory);

}  // namespace embertable
