#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "checkpoint/file.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/slices.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable::formats {

/// A tensor as its entries describe it, checked as far as that goes without data.
struct StoredTensor {
  std::string key;
  BundleEntry entry;       ///< entry of the whole tensor
  std::vector<Box> boxes;  ///< boxes of the slices; one of the whole if there are none
  std::vector<std::optional<BundleEntry>> parts;  ///< where the slices are, once they are wanted

  BundleDType dtype() const noexcept { return static_cast<BundleDType>(entry.dtype); }
};

/// The tensors of a bundle, and which of their bytes have passed their checksum. For one thread.
/// Throws as TensorBundleReader documents.
class StoredTensors {
 public:
  StoredTensors(checkpoint::FileSystem& files, std::filesystem::path prefix);

  const std::filesystem::path& prefix() const noexcept { return prefix_; }
  const BundleHeader& header() const noexcept { return header_; }
  const StringTable& index() const noexcept { return index_; }

  /// Returns the entry under the name of a tensor.
  BundleEntry entry(const std::string& key) const;

  /// Returns the tensor with its slices, no two of which share an element; valid until another
  /// tensor is asked for.
  StoredTensor& tensor(const std::string& key);

  /// Throws unless the elements are of a numeric type that can be read.
  void need_numbers(const StoredTensor& tensor) const;

  std::vector<std::byte> read(StoredTensor& tensor);
  void read_slice(StoredTensor& tensor, const SliceSpec& wanted, std::span<std::byte> out);
  std::vector<std::byte> read_slice(StoredTensor& tensor, const SliceSpec& wanted);
  std::vector<std::string> read_strings(StoredTensor& tensor);

  /// Reads all slices and compares their checksums.
  void check(StoredTensor& tensor);

 private:
  /// Data file, offset, bytes and checksum.
  using Place = std::tuple<std::int32_t, std::int64_t, std::int64_t, std::uint32_t>;

  static Place place_of(const BundleEntry& entry) {
    return {entry.shard, entry.offset, entry.size, entry.masked_sum};
  }
  [[noreturn]] void damage(const std::string& key, const std::string& what) const;
  BundleEntry entry_of(const std::string& key, std::string_view bytes) const;
  void check_place(const std::string& key, const BundleEntry& entry);
  const BundleEntry& part(StoredTensor& tensor, std::size_t slice);
  const checkpoint::File& file(const std::string& key, std::int32_t shard);
  std::string place_text(const BundleEntry& entry, std::int64_t at = 0) const;
  [[noreturn]] void throw_shrunk(const std::string& key, const BundleEntry& entry);
  std::int64_t stored_bytes(StoredTensor& tensor, const std::vector<std::size_t>& slices);
  Box checked_box(const StoredTensor& tensor, const SliceSpec& wanted) const;
  std::vector<std::size_t> slices_of(const StoredTensor& tensor, const Box& wanted) const;
  void read_box(StoredTensor& tensor, const Box& wanted, std::span<std::byte> out);
  void read_part(const StoredTensor& tensor, const BundleEntry& entry, BoxRuns runs,
                 std::span<std::byte> out);
  template <class Take>
  void read_pieces(const StoredTensor& tensor, const BundleEntry& entry, std::int64_t first,
                   std::int64_t last, Take take);
  template <class Take>
  void check_part(const StoredTensor& tensor, const BundleEntry& entry, Take take);

  checkpoint::FileSystem& files_;
  const std::filesystem::path prefix_;
  const StringTable index_;
  const BundleHeader header_;
  std::map<std::int32_t, std::unique_ptr<checkpoint::File>> data_;
  std::set<Place> found_good_;
  std::optional<StoredTensor> held_;  ///< the last tensor that was asked for
};

}  // namespace embertable::formats
