#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "checkpoint/file.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/stored_tensors.h"

namespace embertable {

namespace fs = std::filesystem;
using namespace formats;  // NOLINT: this is their public side
using checkpoint::FileSystem;

namespace {

/// TensorFlow's DT_VARIANT: its checksum is that of decoded parts and not of the bytes.
constexpr std::int32_t kVariant = 21;

}  // namespace

struct TensorBundleReader::State {
  State(FileSystem& files, const fs::path& prefix) : tensors(files, prefix) {}

  std::mutex mutex;  ///< guards what changes in `tensors`
  StoredTensors tensors;
};

TensorBundleReader::TensorBundleReader(const fs::path& prefix)
    : TensorBundleReader(checkpoint::local_files(), prefix) {}
TensorBundleReader::TensorBundleReader(FileSystem& files, const fs::path& prefix)
    : state_(std::make_unique<State>(files, prefix)) {}
TensorBundleReader::TensorBundleReader(TensorBundleReader&&) noexcept = default;
TensorBundleReader& TensorBundleReader::operator=(TensorBundleReader&&) noexcept = default;
TensorBundleReader::~TensorBundleReader() = default;

const fs::path& TensorBundleReader::prefix() const noexcept { return state_->tensors.prefix(); }

std::int64_t TensorBundleReader::num_data_files() const noexcept {
  return state_->tensors.header().num_shards;
}

std::vector<std::string> TensorBundleReader::keys() const {
  std::vector<std::string> keys;
  state_->tensors.index().each([&](std::string_view key, std::string_view) {
    const bool is_name = !key.empty() && key.front() != '\0';
    if (is_name && (keys.empty() || keys.back() != key)) keys.emplace_back(key);
  });
  return keys;
}

bool TensorBundleReader::contains(std::string_view key) const {
  return !key.empty() && key.front() != '\0' && state_->tensors.index().find(key).has_value();
}

BundleTensor TensorBundleReader::describe(const std::string& key) const {
  BundleEntry entry = state_->tensors.entry(key);
  return {key, static_cast<BundleDType>(entry.dtype), std::move(entry.shape),
          std::move(entry.slices)};
}

void TensorBundleReader::require(std::span<const ExpectedTensor> expected) const {
  std::string dtypes, shapes;
  for (const ExpectedTensor& one : expected) {
    const BundleTensor found = describe(one.key);
    if (found.dtype != one.dtype) {
      dtypes += fmt::format(
          "{}tensor_name = {}; expected dtype {} does not equal original dtype {}",
          dtypes.empty() ? "" : "\n", one.key, to_string(one.dtype), to_string(found.dtype));
    }
    if (found.shape != one.shape) {
      shapes += fmt::format(
          "{}tensor_name = {}; shape {} does not match the shape stored in checkpoint, {}",
          shapes.empty() ? "" : "\n", one.key, shape_text(one.shape), shape_text(found.shape));
    }
  }
  const std::string& what = dtypes.empty() ? shapes : dtypes;
  if (!what.empty()) throw ValueError(fmt::format("{}: {}", prefix().string(), what));
}

std::vector<std::byte> TensorBundleReader::read(const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  return state_->tensors.read(state_->tensors.tensor(key));
}

void TensorBundleReader::read(const std::string& key, const SliceSpec& wanted,
                              std::span<std::byte> out) const {
  const std::lock_guard lock(state_->mutex);
  state_->tensors.read_slice(state_->tensors.tensor(key), wanted, out);
}

std::vector<std::byte> TensorBundleReader::read(const std::string& key,
                                                const SliceSpec& wanted) const {
  const std::lock_guard lock(state_->mutex);
  return state_->tensors.read_slice(state_->tensors.tensor(key), wanted);
}

void TensorBundleReader::read_rows(const std::string& key, std::int64_t first, std::int64_t count,
                                   std::span<std::byte> out) const {
  const std::lock_guard lock(state_->mutex);
  StoredTensor& tensor = state_->tensors.tensor(key);
  const Dims& shape = tensor.entry.shape;
  if (shape.empty() || count < 0) {
    throw ValueError(fmt::format("tensor '{}' of {}: {} rows of the shape {} cannot be read", key,
                                 prefix().string(), count, shape_text(shape)));
  }
  SliceSpec spec{shape, TensorSlice(shape.size())};
  spec.slice[0] = {first, count};
  state_->tensors.read_slice(tensor, spec, out);
}

Tensor TensorBundleReader::read_tensor(const std::string& key) const {
  const BundleTensor found = describe(key);
  const auto dtype = to_dtype(found.dtype);
  if (!dtype) {
    throw TypeError(fmt::format("tensor '{}' of {} is of {}, which no Tensor holds", key,
                                prefix().string(), to_string(found.dtype)));
  }
  const std::vector<std::byte> bytes = read(key);
  Tensor tensor(*dtype, Shape(found.shape));
  std::copy(bytes.begin(), bytes.end(), tensor.mutable_bytes().begin());
  return tensor;
}

std::vector<std::string> TensorBundleReader::read_strings(const std::string& key) const {
  const std::lock_guard lock(state_->mutex);
  StoredTensor& tensor = state_->tensors.tensor(key);
  if (tensor.dtype() != BundleDType::kString) {
    throw TypeError(fmt::format("tensor '{}' of {} is of {}, not strings", key, prefix().string(),
                                to_string(tensor.dtype())));
  }
  if (!tensor.entry.slices.empty()) {
    throw NotImplemented(fmt::format("tensor '{}' of {}: slices of strings are not supported", key,
                                     prefix().string()));
  }
  return state_->tensors.read_strings(tensor);
}

void TensorBundleReader::verify() const {
  for (const std::string& key : keys()) {
    const BundleDType dtype = describe(key).dtype;
    if (dtype == BundleDType::kString) read_strings(key);
    if (dtype == BundleDType::kString || static_cast<std::int32_t>(dtype) == kVariant) continue;
    const std::lock_guard lock(state_->mutex);
    state_->tensors.check(state_->tensors.tensor(key));
  }
}

}  // namespace embertable
