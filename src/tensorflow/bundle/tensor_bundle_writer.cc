#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <protozero/varint.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/interruption.h"
#include "checkpoint/file.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_commit.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/bundle_messages.h"
#include "tensorflow/bundle/slices.h"

namespace embertable {

namespace fs = std::filesystem;
using namespace formats;  // NOLINT: this is their public side
using checkpoint::FileSystem;

namespace {

constexpr std::int64_t kFilledAtOnce = 1 << 20;

/// Returns the length of each string as a varint, the checksum of the lengths, and the strings.
std::string string_bytes(std::span<const std::string> strings, std::uint32_t& sum) {
  LengthSum lengths(false);
  std::string bytes;
  for (const std::string& one : strings) {
    protozero::write_varint(std::back_inserter(bytes), one.size());
    lengths.add(one.size());
  }
  const std::size_t summed_from = bytes.size();
  append_little_endian(masked_crc32c(lengths.sum()), bytes);
  for (const std::string& one : strings) bytes += one;
  sum = extend_crc32c(lengths.sum(), std::as_bytes(std::span(bytes).subspan(summed_from)));
  return bytes;
}

}  // namespace

struct TensorBundleWriter::State {
  State(FileSystem& the_files, const fs::path& the_prefix, TensorBundleOptions the_options)
      : files(the_files), prefix(fs::absolute(the_prefix)), options(the_options) {
    if (options.alignment < 1 || options.alignment > TensorBundleOptions::kMaxAlignment)
      throw ValueError(fmt::format("{}: alignment must be 1..{}, got {}", prefix.string(),
                                   TensorBundleOptions::kMaxAlignment, options.alignment));
    checkpoint::make_directories(files, prefix.parent_path());
    data.emplace(files, data_path(prefix, 0, 1));
  }

  FileSystem& files;
  const fs::path prefix;
  const TensorBundleOptions options;
  std::optional<checkpoint::NewFile> data;  ///< empty: closed
  std::map<std::string, BundleEntry> entries;
  std::map<std::string, std::vector<Box>> boxes;  ///< boxes of sliced tensors

  void check_open() const {
    if (!data) throw StateError(fmt::format("BundleWriter is closed: {}", prefix.string()));
  }
  void check(const std::string& key, BundleDType dtype) const;
  void check_new(const std::string& key) const;
  BundleEntry begin(BundleDType dtype, std::span<const std::int64_t> shape);
  bool check_slice(const std::string& key, BundleDType dtype, const SliceSpec& spec, Box& box);
  void add_slice_entry(const std::string& key, const SliceSpec& spec, Box box, BundleEntry part);
  void copy_all(BundleEntry& entry, std::span<const std::byte> bytes);
  void fill_all(BundleEntry& entry, const Fill& fill);

  /// Runs `work`; if it throws, nothing is left on disk.
  template <class Work>
  void guard(Work work) {
    try {
      work();
    } catch (...) {
      data.reset();
      throw;
    }
  }
};

void TensorBundleWriter::State::check(const std::string& key, BundleDType dtype) const {
  check_open();
  if (key.empty() || key.front() == '\0')
    throw ValueError("a key must not be empty or begin with a zero byte");
  if (dtype == BundleDType::kString)
    throw TypeError(fmt::format("tensor '{}': strings are added by add_strings", key));
  if (byte_width(dtype) == 0)
    throw NotImplemented(fmt::format("tensor '{}': {} is not written", key, to_string(dtype)));
}

void TensorBundleWriter::State::check_new(const std::string& key) const {
  if (entries.contains(key))
    throw ValueError(fmt::format("duplicate key '{}': it is added already", key));
}

BundleEntry TensorBundleWriter::State::begin(BundleDType dtype,
                                             std::span<const std::int64_t> shape) {
  const std::int64_t over = data->size() % options.alignment;
  if (over > 0) data->write(std::vector<std::byte>(options.alignment - over));
  return {.dtype = static_cast<std::int32_t>(dtype),
          .shape = {shape.begin(), shape.end()},
          .shard = 0,
          .offset = data->size(),
          .size = 0,
          .masked_sum = 0,
          .slices = {}};
}

/// Writes memory that others may change meanwhile: each byte is read once, and what is summed is
/// what is written.
void TensorBundleWriter::State::copy_all(BundleEntry& entry, std::span<const std::byte> bytes) {
  std::vector<std::byte> block(std::min<std::size_t>(bytes.size(), kFilledAtOnce));
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < bytes.size(); at += block.size()) {
    const auto piece = std::span(block).first(std::min(block.size(), bytes.size() - at));
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), piece.begin());
    sum = extend_crc32c(sum, piece);
    data->write(piece);
  }
  entry.size = std::ssize(bytes);
  entry.masked_sum = masked_crc32c(sum);
}

/// Sets the slice's box. Returns true if it is all of the tensor.
bool TensorBundleWriter::State::check_slice(const std::string& key, BundleDType dtype,
                                            const SliceSpec& spec, Box& box) {
  check(key, dtype);
  const std::optional<std::int64_t> elements = element_count(spec.full_shape);
  std::int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, byte_width(dtype), &bytes))
    throw ValueError(fmt::format("tensor '{}': {} is no shape", key, shape_text(spec.full_shape)));
  box = box_of(spec.slice, spec.full_shape);
  const auto sliced = boxes.find(key);
  if (sliced == boxes.end()) {
    check_new(key);
    if (box.covers(spec.full_shape)) return true;
  }
  if (box.volume() == 0) {
    throw ValueError(
        fmt::format("tensor '{}': slice '{}': Expected non-negative start and positive length", key,
                    to_string(spec)));
  }
  if (sliced == boxes.end()) return false;
  const BundleEntry& whole = entries.at(key);
  if (whole.dtype != static_cast<std::int32_t>(dtype) || whole.shape != spec.full_shape) {
    throw ValueError(
        fmt::format("tensor '{}': slices must be of one tensor, {} of {}, got one of {} of {}", key,
                    shape_text(whole.shape), to_string(static_cast<BundleDType>(whole.dtype)),
                    shape_text(spec.full_shape), to_string(dtype)));
  }
  for (std::size_t i = 0; i < sliced->second.size(); ++i) {
    if (!share_an_element(sliced->second[i], box)) continue;
    throw ValueError(
        fmt::format("tensor '{}': Overlapping slices: existing slice = '{}', new slice = '{}'", key,
                    to_string(SliceSpec{whole.shape, whole.slices[i]}), to_string(spec)));
  }
  return false;
}

void TensorBundleWriter::State::add_slice_entry(const std::string& key, const SliceSpec& spec,
                                                Box box, BundleEntry part) {
  BundleEntry& whole = entries[key];
  whole.dtype = part.dtype;
  whole.shape = spec.full_shape;
  whole.slices.push_back(spec.slice);
  boxes[key].push_back(std::move(box));
  entries.emplace(slice_key(key, spec.slice), std::move(part));
}

/// Fills the box row by row, as many at once as fit.
void TensorBundleWriter::State::fill_all(BundleEntry& entry, const Fill& fill) {
  const std::int64_t rows = entry.shape.empty() ? 1 : entry.shape[0];
  const std::int64_t bytes =
      *element_count(entry.shape) * byte_width(static_cast<BundleDType>(entry.dtype));
  const std::int64_t row_bytes = rows > 0 ? bytes / rows : 0;
  const std::int64_t at_once =
      row_bytes > 0 ? std::max<std::int64_t>(1, kFilledAtOnce / row_bytes) : 1;
  std::vector<std::byte> chunk(std::min(at_once, rows) * row_bytes);
  std::uint32_t sum = 0;
  for (std::int64_t first = 0; first < rows && row_bytes > 0; first += at_once) {
    Interruption::ask();
    const std::int64_t count = std::min(at_once, rows - first);
    const auto piece = std::span(chunk).first(count * row_bytes);
    fill(first, piece);
    sum = extend_crc32c(sum, piece);
    data->write(piece);
  }
  entry.size = bytes;
  entry.masked_sum = masked_crc32c(sum);
}

TensorBundleWriter::TensorBundleWriter(const fs::path& prefix, TensorBundleOptions options)
    : TensorBundleWriter(checkpoint::local_files(), prefix, options) {}
TensorBundleWriter::TensorBundleWriter(FileSystem& files, const fs::path& prefix,
                                       TensorBundleOptions options)
    : state_(std::make_unique<State>(files, prefix, options)) {}
TensorBundleWriter::~TensorBundleWriter() = default;
TensorBundleWriter::TensorBundleWriter(TensorBundleWriter&&) noexcept = default;
TensorBundleWriter& TensorBundleWriter::operator=(TensorBundleWriter&&) noexcept = default;

void TensorBundleWriter::add(const std::string& key, BundleDType dtype,
                             std::span<const std::int64_t> shape,
                             std::span<const std::byte> bytes) {
  state_->check(key, dtype);
  state_->check_new(key);
  const auto count = element_count(shape);
  if (!count || std::ssize(bytes) % byte_width(dtype) != 0 ||
      std::ssize(bytes) / byte_width(dtype) != *count) {
    throw ValueError(fmt::format("tensor '{}': {} of {} cannot have {} bytes", key,
                                 shape_text(shape), to_string(dtype), bytes.size()));
  }
  state_->guard([&] {
    BundleEntry entry = state_->begin(dtype, shape);
    state_->copy_all(entry, bytes);
    state_->entries.emplace(key, std::move(entry));
  });
}

void TensorBundleWriter::add(const std::string& key, const Tensor& tensor) {
  const Tensor packed = tensor.packed();
  add(key, to_bundle_dtype(packed.dtype()), packed.shape().dims(), packed.bytes());
}

void TensorBundleWriter::add_strings(const std::string& key, std::span<const std::int64_t> shape,
                                     std::span<const std::string> strings) {
  state_->check(key, BundleDType::kUInt8);
  state_->check_new(key);
  if (element_count(shape) != std::ssize(strings)) {
    throw ValueError(fmt::format("tensor '{}': {} cannot have {} strings", key, shape_text(shape),
                                 strings.size()));
  }
  state_->guard([&] {
    BundleEntry entry = state_->begin(BundleDType::kString, shape);
    std::uint32_t sum = 0;
    const std::string bytes = string_bytes(strings, sum);
    state_->data->write(checkpoint::bytes_of(bytes));
    entry.size = std::ssize(bytes);
    entry.masked_sum = masked_crc32c(sum);
    state_->entries.emplace(key, std::move(entry));
  });
}

void TensorBundleWriter::add_slice(const std::string& key, BundleDType dtype, const SliceSpec& spec,
                                   std::span<const std::byte> bytes) {
  Box box;
  state_->check_slice(key, dtype, spec, box);
  const std::int64_t width = byte_width(dtype);
  if (std::ssize(bytes) % width != 0 || std::ssize(bytes) / width != box.volume()) {
    throw ValueError(fmt::format("tensor '{}': slice '{}' of {} cannot have {} bytes", key,
                                 to_string(spec), to_string(dtype), bytes.size()));
  }
  const std::int64_t rows = box.length.empty() ? 1 : box.length[0];
  const std::int64_t row_bytes = rows > 0 ? std::ssize(bytes) / rows : 0;
  add_slice(key, dtype, spec, [&](std::int64_t first, std::span<std::byte> out) {
    std::copy_n(bytes.begin() + first * row_bytes, out.size(), out.begin());
  });
}

void TensorBundleWriter::add_slice(const std::string& key, BundleDType dtype, const SliceSpec& spec,
                                   const Fill& fill) {
  if (!fill) throw ValueError(fmt::format("tensor '{}': fill must be a function, got none", key));
  Box box;
  const bool whole = state_->check_slice(key, dtype, spec, box);
  state_->guard([&] {
    BundleEntry part = state_->begin(dtype, box.length);
    state_->fill_all(part, fill);
    if (whole) {
      state_->entries.emplace(key, std::move(part));
    } else {
      state_->add_slice_entry(key, spec, std::move(box), std::move(part));
    }
  });
}

void TensorBundleWriter::finish() {
  state_->check_open();
  state_->guard([&] {
    state_->data->sync();
    const BundleHeader header{.num_shards = 1, .producer = kBundleVersion, .bad_consumers = {}};
    const std::pair renamed(state_->data->temporary(), data_path(state_->prefix, 0, 1));
    commit_bundle(state_->files, state_->prefix, header, state_->entries, std::span(&renamed, 1),
                  &*state_->data);
    state_->data->renamed();
    state_->data.reset();
  });
}

}  // namespace embertable
