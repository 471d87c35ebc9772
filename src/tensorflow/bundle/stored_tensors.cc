#include "tensorflow/bundle/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/crc32c.h"
#include "embertable/errors.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/stored_strings.h"

namespace embertable::formats {

namespace fs = std::filesystem;
using checkpoint::File;
using checkpoint::FileSystem;

namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;

/// Limit of a tensor's size as a multiple of its files', because slices may share bytes.
constexpr std::int64_t kMaxSharing = 64;

/// Maximum number of open data files: checkpoints may have more than a process may open.
constexpr std::size_t kMaxOpenFiles = 64;

}  // namespace

StoredTensors::StoredTensors(FileSystem& files, fs::path prefix)
    : files_(files),
      prefix_(std::move(prefix)),
      index_(checkpoint::read_file(files_, index_path(prefix_), kMaxIndexBytes),
             index_path(prefix_)),
      header_(header_of(index_, index_path(prefix_))) {}

void StoredTensors::damage(const std::string& key, const std::string& what) const {
  throw DataLoss(fmt::format("{}: tensor '{}': {}", prefix_.string(), key, what));
}

BundleEntry StoredTensors::entry_of(const std::string& key, std::string_view bytes) const {
  BundleEntry entry;
  if (!parse(bytes, entry)) damage(key, "its entry is not parseable");
  if (!element_count(entry.shape)) damage(key, "Invalid tensor shape " + shape_text(entry.shape));
  return entry;
}

BundleEntry StoredTensors::entry(const std::string& key) const {
  const bool is_name = !key.empty() && key.front() != '\0';
  const auto bytes = is_name ? index_.find(key) : std::nullopt;
  if (!bytes)
    throw KeyError(fmt::format("Key {} not found in checkpoint {}", key, prefix_.string()));
  return entry_of(key, *bytes);
}

/// Returns the tensor with its slices, no two of which share an element.
StoredTensor& StoredTensors::tensor(const std::string& key) {
  if (held_ && held_->key == key) return *held_;
  StoredTensor tensor{.key = key, .entry = entry(key), .boxes = {}, .parts = {}};
  std::optional<OverlappingPair> pair;
  try {
    for (const TensorSlice& slice : tensor.entry.slices)
      tensor.boxes.push_back(box_of(slice, tensor.entry.shape));
    pair = find_overlap(tensor.boxes);
  } catch (const ValueError& error) {
    damage(key, error.what());
  }
  if (pair) {
    const auto text = [&](std::size_t i) {
      return to_string(SliceSpec{tensor.entry.shape, tensor.entry.slices[i]});
    };
    damage(key, fmt::format("Overlapping slices: existing slice = {}, new slice = {}",
                            text(pair->first), text(pair->second)));
  }
  if (tensor.entry.slices.empty()) tensor.boxes.push_back(whole_of(tensor.entry.shape));
  tensor.parts.resize(tensor.boxes.size());
  held_ = std::move(tensor);
  return *held_;
}

/// Returns a data file, valid until another is asked for.
const File& StoredTensors::file(const std::string& key, std::int32_t shard) {
  const auto open = data_.find(shard);
  if (open != data_.end()) return *open->second;
  const fs::path path = data_path(prefix_, shard, header_.num_shards);
  if (!files_.stat(path))
    damage(key, fmt::format("the index names {}, but it is missing", path.string()));
  if (data_.size() == kMaxOpenFiles) data_.clear();
  return *data_.emplace(shard, files_.open(path)).first->second;
}

/// Returns where an entry's bytes are, for messages.
std::string StoredTensors::place_text(const BundleEntry& entry, std::int64_t at) const {
  return fmt::format("{} from byte {}",
                     data_path(prefix_, entry.shard, header_.num_shards).filename().string(),
                     entry.offset + at);
}

/// Reports a file that became shorter: it had the entry's bytes when it was opened.
void StoredTensors::throw_shrunk(const std::string& key, const BundleEntry& entry) {
  const std::int64_t left = std::max<std::int64_t>(0, file(key, entry.shard).size() - entry.offset);
  damage(key, fmt::format("its data file has shrunk: expected {} bytes, got {}, {}", entry.size,
                          left, place_text(entry)));
}

/// Checks that an entry's bytes are as many as its elements need and lie within a data file.
void StoredTensors::check_place(const std::string& key, const BundleEntry& entry) {
  const std::int64_t width = layout_of(static_cast<BundleDType>(entry.dtype)).width;
  const std::int64_t count = *element_count(entry.shape);
  std::int64_t bytes = 0;
  const bool too_many = __builtin_mul_overflow(count, width, &bytes);
  if (width > 0 && (too_many || bytes != entry.size)) {
    damage(key,
           fmt::format("Invalid size in bundle entry: {} bytes for {} of {}", entry.size,
                       shape_text(entry.shape), to_string(static_cast<BundleDType>(entry.dtype))));
  }
  if (entry.shard < 0 || entry.shard >= header_.num_shards)
    damage(key, fmt::format("lies in data file {} of {}", entry.shard, header_.num_shards));
  const std::int64_t end = file(key, entry.shard).size();
  if (entry.offset < 0 || entry.size < 0 || entry.offset > end || entry.size > end - entry.offset) {
    damage(key, fmt::format("{} has {} bytes, too few for {} from {}",
                            data_path(prefix_, entry.shard, header_.num_shards).string(), end,
                            entry.size, entry.offset));
  }
}

/// Returns the entry of a slice, or of a tensor without slices.
const BundleEntry& StoredTensors::part(StoredTensor& tensor, std::size_t slice) {
  if (tensor.parts[slice]) return *tensor.parts[slice];
  BundleEntry found = tensor.entry;
  if (!tensor.entry.slices.empty()) {
    const TensorSlice& extents = tensor.entry.slices[slice];
    const SliceSpec spec{tensor.entry.shape, extents};
    const auto bytes = index_.find(slice_key(tensor.key, extents));
    if (!bytes) damage(tensor.key, fmt::format("its slice '{}' has no entry", to_string(spec)));
    found = entry_of(tensor.key, *bytes);
    if (found.dtype != tensor.entry.dtype || found.shape != tensor.boxes[slice].length) {
      damage(tensor.key, fmt::format("its slice '{}' is stored as {} of {}", to_string(spec),
                                     shape_text(found.shape),
                                     to_string(static_cast<BundleDType>(found.dtype))));
    }
  }
  check_place(tensor.key, found);
  return tensor.parts[slice].emplace(std::move(found));
}

void StoredTensors::need_numbers(const StoredTensor& tensor) const {
  const BundleDType dtype = tensor.dtype();
  if (dtype == BundleDType::kString)
    throw TypeError(
        fmt::format("tensor '{}' of {} holds strings, not numbers", tensor.key, prefix_.string()));
  if (byte_width(dtype) == 0) {
    throw NotImplemented(fmt::format("tensor '{}' of {} is of {}, which is not read", tensor.key,
                                     prefix_.string(), to_string(dtype)));
  }
}

/// Returns the slices that share elements with the box. Throws ValueError unless all of its
/// elements are in them.
std::vector<std::size_t> StoredTensors::slices_of(const StoredTensor& tensor,
                                                  const Box& wanted) const {
  std::vector<std::size_t> slices;
  std::int64_t open = wanted.volume();
  for (std::size_t i = 0; i < tensor.boxes.size() && open > 0; ++i) {
    if (const auto common = intersection(tensor.boxes[i], wanted)) {
      open -= common->volume();
      slices.push_back(i);
    }
  }
  if (open > 0) {
    throw ValueError(fmt::format(
        "Does not have sufficient slices for partitioned tensor {} of {}: {} elements of {} from "
        "{} "
        "are in none",
        tensor.key, prefix_.string(), open, shape_text(wanted.length), shape_text(wanted.start)));
  }
  return slices;
}

/// Reads all slices that share elements with the box, and swaps bytes if the file has the other
/// order.
void StoredTensors::read_box(StoredTensor& tensor, const Box& wanted, std::span<std::byte> out) {
  for (const std::size_t i : slices_of(tensor, wanted)) {
    const Box common = *intersection(tensor.boxes[i], wanted);
    read_part(tensor, part(tensor, i), BoxRuns(tensor.boxes[i], wanted, common), out);
  }
  if (header_.endianness != 0) swap_bytes(out, layout_of(tensor.dtype()).number);
}

/// Returns the box of a slice. Throws unless the tensor has numbers, and this shape.
Box StoredTensors::checked_box(const StoredTensor& tensor, const SliceSpec& wanted) const {
  need_numbers(tensor);
  if (wanted.full_shape != tensor.entry.shape) {
    throw ValueError(fmt::format(
        "tensor_name = {}: shape {} does not match the shape stored in checkpoint {}, {}",
        tensor.key, shape_text(wanted.full_shape), prefix_.string(),
        shape_text(tensor.entry.shape)));
  }
  return box_of(wanted.slice, tensor.entry.shape);
}

void StoredTensors::read_slice(StoredTensor& tensor, const SliceSpec& wanted,
                               std::span<std::byte> out) {
  const Box box = checked_box(tensor, wanted);
  const std::int64_t width = byte_width(tensor.dtype());
  if (std::ssize(out) % width != 0 || std::ssize(out) / width != box.volume()) {
    throw ValueError(
        fmt::format("tensor '{}': {} elements of {} bytes must be read into as many, got {} bytes",
                    tensor.key, box.volume(), width, out.size()));
  }
  read_box(tensor, box, out);
}

std::vector<std::byte> StoredTensors::read_slice(StoredTensor& tensor, const SliceSpec& wanted) {
  const Box box = checked_box(tensor, wanted);
  stored_bytes(tensor, slices_of(tensor, box));  // throws unless they hold the box
  std::vector<std::byte> out(box.volume() * byte_width(tensor.dtype()));
  read_box(tensor, box, out);
  return out;
}

/// Copies the runs of a stored slice. Unless its checksum has passed, all of it is read and summed;
/// else only what lies between the first run and the last.
void StoredTensors::read_part(const StoredTensor& tensor, const BundleEntry& entry, BoxRuns runs,
                              std::span<std::byte> out) {
  const std::int64_t width = byte_width(tensor.dtype());
  const std::int64_t end = runs.read_end() * width;
  BoxRuns::Run run;
  bool more = runs.next(run);
  const auto copy = [&](std::int64_t at, std::span<const std::byte> piece) {
    const std::int64_t piece_end = at + std::ssize(piece);
    while (more && run.from * width < piece_end) {
      const std::int64_t begin = run.from * width, stop = (run.from + run.count) * width;
      const std::int64_t first = std::max(begin, at), last = std::min(stop, piece_end);
      std::copy_n(piece.begin() + (first - at), last - first,
                  out.begin() + run.to * width + (first - begin));
      if (stop > piece_end) return;
      more = runs.next(run);
    }
  };
  if (found_good_.contains(place_of(entry))) {
    read_pieces(tensor, entry, run.from * width, end, copy);
  } else {
    check_part(tensor, entry, copy);
  }
}

/// Reads bytes [first, last) of a stored slice piece by piece: take(place, bytes).
template <class Take>
void StoredTensors::read_pieces(const StoredTensor& tensor, const BundleEntry& entry,
                                std::int64_t first, std::int64_t last, Take take) {
  const File& from = file(tensor.key, entry.shard);
  std::vector<std::byte> chunk(std::min(kChunkBytes, last - first));
  for (std::int64_t at = first; at < last; at += std::ssize(chunk)) {
    const auto bytes = static_cast<std::size_t>(std::min(std::ssize(chunk), last - at));
    const std::span<std::byte> piece = std::span(chunk).first(bytes);
    if (from.read(entry.offset + at, piece) != bytes) throw_shrunk(tensor.key, entry);
    take(at, piece);
  }
}

/// Reads all of a stored slice and compares its checksum; calls take(place, bytes) meanwhile.
template <class Take>
void StoredTensors::check_part(const StoredTensor& tensor, const BundleEntry& entry, Take take) {
  std::uint32_t sum = 0;
  read_pieces(tensor, entry, 0, entry.size, [&](std::int64_t at, std::span<const std::byte> piece) {
    sum = extend_crc32c(sum, piece);
    take(at, piece);
  });
  if (masked_crc32c(sum) != entry.masked_sum) {
    damage(tensor.key, fmt::format("Checksum does not match: stored {:08x}, calculated {:08x}, {}",
                                   entry.masked_sum, masked_crc32c(sum), place_text(entry)));
  }
  found_good_.insert(place_of(entry));
}

/// Returns the bytes of slices. Called before memory is taken, so that no memory is taken for bytes
/// that no file holds.
std::int64_t StoredTensors::stored_bytes(StoredTensor& tensor,
                                         const std::vector<std::size_t>& slices) {
  std::map<std::int32_t, std::int64_t> used;  // bytes used of each data file
  std::int64_t bytes = 0;
  for (const std::size_t i : slices) {
    const BundleEntry& entry = part(tensor, i);
    std::int64_t& of_file = used[entry.shard];
    of_file += entry.size;
    if (of_file / kMaxSharing > file(tensor.key, entry.shard).size())
      damage(tensor.key, "its slices are many times as large as their data file");
    bytes += entry.size;
  }
  return bytes;
}

std::vector<std::byte> StoredTensors::read(StoredTensor& tensor) {
  need_numbers(tensor);
  std::vector<std::size_t> all(tensor.boxes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::byte> out(stored_bytes(tensor, all));
  read_box(tensor, whole_of(tensor.entry.shape), out);
  return out;
}

std::vector<std::string> StoredTensors::read_strings(StoredTensor& tensor) {
  const BundleEntry& entry = part(tensor, 0);
  std::string bytes(entry.size, '\0');
  if (file(tensor.key, entry.shard)
          .read(entry.offset, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))) !=
      bytes.size())
    throw_shrunk(tensor.key, entry);
  return strings_of({.bytes = bytes,
                     .count = static_cast<std::uint64_t>(*element_count(tensor.entry.shape)),
                     .masked_sum = entry.masked_sum,
                     .swapped = header_.endianness != 0,
                     .refuse = [&](const std::string& what, std::int64_t at) {
                       damage(tensor.key, fmt::format("{}, {}", what, place_text(entry, at)));
                     }});
}

void StoredTensors::check(StoredTensor& tensor) {
  for (std::size_t i = 0; i < tensor.boxes.size(); ++i)
    check_part(tensor, part(tensor, i), [](auto, auto) {});
}

}  // namespace embertable::formats
