#include "tensorflow/bundle/bundle_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "embertable/errors.h"

namespace embertable::formats {

namespace fs = std::filesystem;

namespace {

void check_header(const BundleHeader& header, const fs::path& index) {
  const auto refuse = [&](const std::string& what) {
    throw ValueError(fmt::format("{}: cannot read: {}", index.string(), what));
  };
  if (header.producer < 0) {
    refuse(fmt::format("Checkpoint producer version {} below min producer 0 supported",
                       header.producer));
  }
  if (header.min_consumer > kBundleVersion) {
    refuse(fmt::format("Checkpoint min consumer version {} above current version {}",
                       header.min_consumer, kBundleVersion));
  }
  for (const std::int32_t bad : header.bad_consumers) {
    if (bad == kBundleVersion)
      refuse(fmt::format("Checkpoint disallows consumer version {}", kBundleVersion));
  }
  if (header.num_shards < 1 || header.endianness < 0 || header.endianness > 1) {
    throw DataLoss(fmt::format(
        "{}: cannot read: the header has {} data files and byte order {}. Perhaps the file is "
        "corrupt",
        index.string(), header.num_shards, header.endianness));
  }
}

}  // namespace

BundleHeader header_of(const StringTable& index, const fs::path& path) {
  const auto bytes = index.find("");
  BundleHeader header;
  if (!bytes || !parse(*bytes, header)) {
    throw DataLoss(
        fmt::format("{}: cannot read: no header. Perhaps the file is corrupt", path.string()));
  }
  check_header(header, path);
  return header;
}

fs::path index_path(const fs::path& prefix) { return prefix.string() + ".index"; }

fs::path data_path(const fs::path& prefix, std::int32_t file, std::int32_t files) {
  return fmt::format("{}.data-{:05d}-of-{:05d}", prefix.string(), file, files);
}

bool is_data_name(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (!name.starts_with(".data-")) return false;
  name.remove_prefix(6);
  const std::size_t of = name.find("-of-");
  if (of == std::string_view::npos) return false;
  const auto digits = [](std::string_view text) {
    return text.size() >= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return digits(name.substr(0, of)) && digits(name.substr(of + 4));
}

ElementLayout layout_of(BundleDType dtype) noexcept {
  const std::int64_t width = byte_width(dtype);
  const bool complex = dtype == BundleDType::kComplex64 || dtype == BundleDType::kComplex128;
  return {width, complex ? width / 2 : width};
}

void swap_bytes(std::span<std::byte> numbers, std::int64_t width) {
  if (width < 2) return;
  for (auto at = numbers.begin(); at != numbers.end(); at += width) std::reverse(at, at + width);
}

void LengthSum::add(std::uint64_t length) {
  char stored[sizeof length];
  std::size_t bytes = sizeof length;
  if (length <= 0xffffffffu) {
    bytes = sizeof(std::uint32_t);
    store_little_endian(static_cast<std::uint32_t>(length), stored);
  } else {
    store_little_endian(length, stored);
  }
  if (big_endian_) std::reverse(stored, stored + bytes);
  sum_ = extend_crc32c(sum_, std::as_bytes(std::span(stored, bytes)));
}

}  // namespace embertable::formats

namespace embertable {

std::int64_t byte_width(BundleDType dtype) noexcept {
  switch (dtype) {
    case BundleDType::kUInt8:
    case BundleDType::kInt8:
    case BundleDType::kBool:
      return 1;
    case BundleDType::kInt16:
    case BundleDType::kUInt16:
    case BundleDType::kBFloat16:
    case BundleDType::kFloat16:
      return 2;
    case BundleDType::kFloat32:
    case BundleDType::kInt32:
    case BundleDType::kUInt32:
      return 4;
    case BundleDType::kFloat64:
    case BundleDType::kInt64:
    case BundleDType::kUInt64:
    case BundleDType::kComplex64:
      return 8;
    case BundleDType::kComplex128:
      return 16;
    case BundleDType::kString:
      break;
  }
  return 0;
}

std::string to_string(BundleDType dtype) {
  switch (dtype) {
    case BundleDType::kFloat32:
      return "float32";
    case BundleDType::kFloat64:
      return "float64";
    case BundleDType::kInt32:
      return "int32";
    case BundleDType::kUInt8:
      return "uint8";
    case BundleDType::kInt16:
      return "int16";
    case BundleDType::kInt8:
      return "int8";
    case BundleDType::kString:
      return "string";
    case BundleDType::kComplex64:
      return "complex64";
    case BundleDType::kInt64:
      return "int64";
    case BundleDType::kBool:
      return "bool";
    case BundleDType::kBFloat16:
      return "bfloat16";
    case BundleDType::kUInt16:
      return "uint16";
    case BundleDType::kComplex128:
      return "complex128";
    case BundleDType::kFloat16:
      return "float16";
    case BundleDType::kUInt32:
      return "uint32";
    case BundleDType::kUInt64:
      return "uint64";
  }
  return fmt::format("dtype {}", static_cast<std::int32_t>(dtype));
}

BundleDType to_bundle_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return BundleDType::kFloat32;
    case DType::kFloat64:
      return BundleDType::kFloat64;
    case DType::kInt32:
      return BundleDType::kInt32;
    case DType::kInt64:
      return BundleDType::kInt64;
    case DType::kBool:
      return BundleDType::kBool;
    case DType::kBFloat16:
      return BundleDType::kBFloat16;
    case DType::kFloat16:
      return BundleDType::kFloat16;
  }
  return BundleDType::kFloat32;
}

std::optional<DType> to_dtype(BundleDType dtype) noexcept {
  for (const DType one : kDTypes)
    if (to_bundle_dtype(one) == dtype) return one;
  return std::nullopt;
}

}  // namespace embertable
