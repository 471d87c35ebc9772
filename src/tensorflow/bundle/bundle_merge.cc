#include <fmt/format.h>

#include <map>
#include <system_error>
#include <utility>

#include "checkpoint/file.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_commit.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/slices.h"
#include "tensorflow/bundle/string_table.h"

namespace embertable {

namespace fs = std::filesystem;
using checkpoint::FileSystem;

namespace formats {
namespace {

/// Returns the same path for every way to a prefix, whatever links its directories are.
fs::path resolved(const fs::path& prefix) {
  const fs::path whole = fs::absolute(prefix);
  std::error_code failed;
  const fs::path directory = fs::weakly_canonical(whole.parent_path(), failed);
  return failed ? whole.lexically_normal() : directory / whole.filename();
}

/// Names an entry for messages: the keys of slices begin with a zero byte, which would end the
/// text.
std::string entry_text(const std::string& key) {
  return key.front() == '\0' ? fmt::format("slice {:?}", key) : fmt::format("tensor '{}'", key);
}

/// Collects what several checkpoints are together.
class Merger {
 public:
  explicit Merger(FileSystem& files) : files_(files) {}

  /// Returns false if the part's index is missing.
  bool add(const fs::path& part) {
    const fs::path path = index_path(part);
    if (!files_.stat(path)) return false;
    const StringTable index(checkpoint::read_file(files_, path, kMaxIndexBytes), path);
    add_header(index, path);
    index.each([&](std::string_view key, std::string_view bytes) {
      if (!key.empty()) add_entry(std::string(key), bytes, part);
    });
    parts_.push_back(part);
    return true;
  }

  void finish(const fs::path& prefix) {
    check_slices();
    header_.num_shards = std::max<std::int32_t>(1, static_cast<std::int32_t>(data_.size()));
    std::vector<std::pair<fs::path, fs::path>> renamed;
    for (const fs::path& from : data_) {
      renamed.emplace_back(
          from, data_path(prefix, static_cast<std::int32_t>(renamed.size()), header_.num_shards));
    }
    checkpoint::make_directories(files_, prefix.parent_path());
    commit_bundle(files_, prefix, header_, entries_, renamed);
    for (const fs::path& part : parts_) remove_rest(part);
  }

 private:
  void add_header(const StringTable& index, const fs::path& path) {
    BundleHeader header = header_of(index, path);
    shards_ = std::exchange(header.num_shards, 0);
    if (parts_.empty()) header_ = header;
    if (header.endianness != header_.endianness)
      throw ValueError(fmt::format("Merging bundles with conflicting endianness: {} and {}",
                                   parts_.front().string(), path.string()));
    if (header != header_)
      throw ValueError(fmt::format("Merging bundles with different format versions: {} and {}",
                                   parts_.front().string(), path.string()));
  }

  void add_entry(const std::string& key, std::string_view bytes, const fs::path& part) {
    BundleEntry entry;
    if (!parse(bytes, entry) || !element_count(entry.shape))
      throw DataLoss(
          fmt::format("{}: {}: its entry is not parseable", part.string(), entry_text(key)));
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      entry.shard = number_of(part, entry.shard, key);
      entries_.emplace(key, std::move(entry));
      return;
    }
    BundleEntry& merged = found->second;
    if (key.front() == '\0')
      throw ValueError(
          fmt::format("merge: {} has a slice that a part before it has too", part.string()));
    if (merged.slices.empty() || entry.slices.empty())
      throw ValueError(fmt::format("Duplicate tensor keyed by {} encountered, when merging {}", key,
                                   part.string()));
    if (merged.dtype != entry.dtype || merged.shape != entry.shape)
      throw ValueError(
          fmt::format("tensor '{}' of {} is another than in the parts before", key, part.string()));
    merged.slices.insert(merged.slices.end(), entry.slices.begin(), entry.slices.end());
  }

  /// Numbers data files in the order in which entries first name them.
  std::int32_t number_of(const fs::path& part, std::int32_t shard, const std::string& key) {
    const fs::path path = data_path(part, shard, shards_);
    if (shard < 0 || shard >= shards_ || !files_.stat(path)) {
      throw DataLoss(fmt::format("{}: {} is in data file {} of {}, which is not there",
                                 part.string(), entry_text(key), shard, shards_));
    }
    std::error_code not_there;
    if (fs::is_symlink(path, not_there))
      throw ValueError(fmt::format(
          "merge: {} is a link: it gets another name, under which it may lead elsewhere; the part "
          "must have the file itself",
          path.string()));
    const auto [place, is_new] = number_.emplace(path, static_cast<std::int32_t>(data_.size()));
    if (is_new) data_.push_back(path);
    return place->second;
  }

  static Box box(const std::string& key, const TensorSlice& slice,
                 const std::vector<std::int64_t>& shape) {
    try {
      return box_of(slice, shape);
    } catch (const ValueError& error) {
      throw DataLoss(fmt::format("merge: tensor '{}': {}", key, error.what()));
    }
  }

  /// Throws unless the slice has the entry that a reader looks for.
  void check_stored(const std::string& key, const BundleEntry& whole, std::size_t slice,
                    const Box& box) const {
    const auto stored = entries_.find(slice_key(key, whole.slices[slice]));
    if (stored != entries_.end() && stored->second.dtype == whole.dtype &&
        stored->second.shape == box.length)
      return;
    throw DataLoss(fmt::format(
        "merge: tensor '{}': its slice '{}' {}", key,
        to_string(SliceSpec{whole.shape, whole.slices[slice]}),
        stored == entries_.end() ? "has no entry" : "is stored with another dtype or shape"));
  }

  void check_slices() const {
    for (const auto& [key, entry] : entries_) {
      std::vector<Box> boxes;
      for (const TensorSlice& slice : entry.slices) boxes.push_back(box(key, slice, entry.shape));
      for (std::size_t i = 0; i < boxes.size(); ++i) check_stored(key, entry, i, boxes[i]);
      if (const auto pair = find_overlap(boxes)) {
        throw ValueError(
            fmt::format("tensor '{}': Overlapping slices: existing slice = '{}', new slice = '{}'",
                        key, to_string(SliceSpec{entry.shape, entry.slices[pair->first]}),
                        to_string(SliceSpec{entry.shape, entry.slices[pair->second]})));
      }
    }
  }

  /// Removes what a part leaves, and its directory if that is then empty, as far as possible.
  void remove_rest(const fs::path& part) noexcept {
    checkpoint::try_remove(files_, index_path(part));
    try {
      const fs::path directory = checkpoint::directory_of(part);
      for (const std::string& name : files_.list(directory))
        if (is_data_name(name, part.filename().string())) files_.remove(directory / name);
      if (files_.list(directory).empty()) files_.remove(directory);
    } catch (...) {  // a later merge under this name, or the user, removes it
    }
  }

  FileSystem& files_;
  std::vector<fs::path> parts_;
  BundleHeader header_;
  std::int32_t shards_ = 0;  ///< data files of the part that is added
  std::map<std::string, BundleEntry> entries_;
  std::map<fs::path, std::int32_t> number_;
  std::vector<fs::path> data_;
};

}  // namespace
}  // namespace formats

fs::path part_prefix(const fs::path& prefix, std::int32_t part, std::int32_t parts) {
  if (part < 0 || part >= parts)
    throw ValueError(fmt::format(
        "part_prefix: part must be 0 <= part < {}, the number of parts, got {}", parts, part));
  return fs::path(prefix.string() + "_temp") / fmt::format("part-{:05d}-of-{:05d}", part, parts);
}

void merge_tensor_bundles(FileSystem& files, std::span<const fs::path> parts,
                          const fs::path& prefix, MergeOptions options) {
  formats::Merger merger(files);
  std::size_t found = 0;
  for (const fs::path& part : parts) {
    if (formats::resolved(part) == formats::resolved(prefix)) {
      throw ValueError(fmt::format("merge: no part must have the prefix that is written, got {}",
                                   part.string()));
    }
    if (merger.add(part)) {
      ++found;
    } else if (!options.allow_missing) {
      throw ValueError(fmt::format("merge: the part {} has no index", part.string()));
    }
  }
  if (found == 0)
    throw ValueError(fmt::format("merge: there must be a part, got none of {}", parts.size()));
  merger.finish(prefix);
}

void merge_tensor_bundles(std::span<const fs::path> parts, const fs::path& prefix,
                          MergeOptions options) {
  merge_tensor_bundles(checkpoint::local_files(), parts, prefix, options);
}

}  // namespace embertable
