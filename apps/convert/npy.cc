#include "apps/convert/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/bytes.h"
#include "base/interruption.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "embertable/variables/tensor.h"
#include "tensorflow/bundle/bundle_files.h"
#include "tensorflow/bundle/slices.h"

namespace embertable::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::int64_t kFloatsAtOnce = 1 << 18;

/// Throws an error that shows what a file has from a byte on, instead of what was expected there.
[[noreturn]] void refuse_npy(const fs::path& path, std::int64_t at, const std::string& expected,
                             const std::string& found) {
  throw DataLoss(fmt::format("{}: cannot read: from byte {}: expected {}, got {}", path.string(),
                             at, expected, found));
}

/// Shows the beginning of a text, which may have any bytes.
std::string shown(std::string_view text) { return fmt::format("{:?}", text.substr(0, 40)); }

/// Header in front of the numbers: `text` is the Python dictionary in it.
struct NpyDictionary {
  std::string_view file;  ///< from its first byte on
  std::string_view text;
  const fs::path& path;

  [[noreturn]] void refuse(std::string_view from, const std::string& expected) const {
    refuse_npy(path, from.data() - file.data(), expected, shown(from));
  }

  /// Returns what follows "'key':".
  std::string_view value_of(std::string_view key) const {
    const std::size_t at = text.find(fmt::format("'{}'", key));
    const std::size_t colon = at == std::string_view::npos ? at : text.find(':', at);
    if (colon == std::string_view::npos) refuse(text, fmt::format("a header with '{}'", key));
    std::string_view value = text.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value;
  }

  std::vector<std::int64_t> dims() const {
    const std::string_view value = value_of("shape");
    const std::size_t end = value.find(')');
    const std::string expected = "a shape as (3, 4)";
    if (!value.starts_with('(') || end == std::string_view::npos) refuse(value, expected);
    std::vector<std::int64_t> dims;
    const char* at = value.data() + 1;
    for (const char* stop = value.data() + end; at < stop;) {
      std::int64_t dim = 0;
      const auto parsed = std::from_chars(at, stop, dim);
      if (parsed.ec != std::errc()) refuse(value, expected);
      dims.push_back(dim);
      at = std::find_if(parsed.ptr, stop, [](char c) { return c != ',' && c != ' ' && c != 'L'; });
    }
    if (!element_count(dims)) refuse(value, "a shape of fewer than 2^63 numbers, none below 0");
    return dims;
  }
};

}  // namespace

std::string npy_header(std::span<const std::int64_t> shape) {
  std::string dims;
  for (const std::int64_t dim : shape)
    dims += fmt::format("{},", dim) + (shape.size() > 1 ? " " : "");
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", dims);
  constexpr std::size_t kFront = 10, kAlignment = 64;
  text.append((kAlignment - (kFront + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string bytes = std::string(kNpyMagic) + std::string("\x01\0", 2);
  append_little_endian(static_cast<std::uint16_t>(text.size()), bytes);
  return bytes + text;
}

NpyHeader parse_npy_header(std::string_view start, const fs::path& path) {
  if (!start.starts_with(kNpyMagic)) {
    refuse_npy(path, 0, "an .npy file, which begins with " + shown(kNpyMagic),
               shown(start.substr(0, kNpyMagic.size())));
  }
  if (start.size() < 12)
    refuse_npy(path, kNpyMagic.size(), "version and length of a header", "the end of the file");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    refuse_npy(path, 6, "a header of version 1, 2 or 3", fmt::format("version {}", version));
  const bool is_long = version >= 2;
  const std::size_t front = is_long ? 12 : 10;
  const std::size_t size = is_long ? load_little_endian<std::uint32_t>(&start[8])
                                   : load_little_endian<std::uint16_t>(&start[8]);
  if (size > start.size() - front) {
    refuse_npy(path, 8, fmt::format("a header of {} bytes at most", start.size() - front),
               fmt::format("{} bytes", size));
  }
  const NpyDictionary dictionary{start, start.substr(front, size), path};
  const std::string_view dtype = dictionary.value_of("descr");
  const std::size_t quote = dtype.find('\'', 1);
  if (!dtype.starts_with('\'') || quote == std::string_view::npos) {
    throw ValueError(fmt::format("{}: its numbers must be of one plain type, got {}", path.string(),
                                 shown(dtype)));
  }
  if (!dictionary.value_of("fortran_order").starts_with("False"))
    throw ValueError(fmt::format(
        "{}: must be stored by rows, got fortran_order=True; save numpy.ascontiguousarray of it",
        path.string()));
  return {std::string(dtype.substr(1, quote - 1)), dictionary.dims(),
          static_cast<std::int64_t>(front + size)};
}

void write_npy(checkpoint::FileSystem& files, const fs::path& path,
               std::span<const std::int64_t> shape, const ReadRows& rows) {
  checkpoint::NewFile file(files, path);
  file.write(checkpoint::bytes_of(npy_header(shape)));
  const std::int64_t count = shape.empty() ? 1 : shape[0];
  const std::int64_t width = count > 0 ? *element_count(shape) / count : 0;
  const std::int64_t at_once = width > 0 ? std::max<std::int64_t>(1, kFloatsAtOnce / width) : 1;
  std::vector<float> chunk(std::min(at_once, count) * width);
  for (std::int64_t first = 0; first < count && width > 0; first += at_once) {
    Interruption::ask();
    const auto piece = std::span(chunk).first(std::min(at_once, count - first) * width);
    rows(first, piece);
    file.write(std::as_bytes(piece));
  }
  file.commit();
}

NpyFile::NpyFile(checkpoint::FileSystem& files, const fs::path& path)
    : path_(path), file_(files.open(path)) {
  std::string start(kMaxNpyHeaderBytes, '\0');
  start.resize(file_->read(0, std::as_writable_bytes(std::span(start.data(), start.size()))));
  header_ = parse_npy_header(start, path);
  is_half_ = header_.dtype == "<f2" || header_.dtype == ">f2";
  is_swapped_ = header_.dtype.starts_with('>');
  if (!is_half_ && header_.dtype != "<f4" && header_.dtype != ">f4") {
    throw ValueError(fmt::format("{}: its numbers must be float32 or float16, got '{}'",
                                 path.string(), header_.dtype));
  }
  const std::int64_t count = *element_count(header_.shape);
  width_ = header_.shape.empty() || header_.shape[0] == 0 ? count : count / header_.shape[0];
  const std::int64_t bytes = file_->size() - header_.bytes;
  if (bytes / (is_half_ ? 2 : 4) != count || bytes % (is_half_ ? 2 : 4) != 0) {
    refuse_npy(path, header_.bytes,
               fmt::format("{} numbers of {} bytes for the shape {}", count, is_half_ ? 2 : 4,
                           shape_text(header_.shape)),
               fmt::format("{} bytes", bytes));
  }
}

/// Reads the numbers from a row on, in this machine's byte order.
void NpyFile::read_numbers(std::int64_t first, std::int64_t number_bytes,
                           std::span<std::byte> out) const {
  const std::int64_t at = header_.bytes + first * width_ * number_bytes;
  const std::size_t read = file_->read(at, out);
  if (read != out.size()) {
    refuse_npy(path_, at, fmt::format("{} bytes of numbers", out.size()),
               fmt::format("{}: the file has shrunk", read));
  }
  if (is_swapped_) swap_bytes(out, number_bytes);
}

void NpyFile::read(std::int64_t first, std::span<float> out) const {
  if (!is_half_) return read_numbers(first, sizeof(float), std::as_writable_bytes(out));
  std::vector<Float16> halves(out.size());
  read_numbers(first, sizeof(Float16), std::as_writable_bytes(std::span(halves)));
  std::transform(halves.begin(), halves.end(), out.begin(),
                 [](Float16 half) { return static_cast<float>(half); });
}

}  // namespace embertable::formats
