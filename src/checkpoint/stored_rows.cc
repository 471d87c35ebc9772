#include "checkpoint/stored_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bfloat16.h"
#include "base/float_environment.h"
#include "base/rows.h"

namespace embertable::checkpoint {
namespace {

constexpr double kLevels = 255;  // steps between the least and the largest number

/// What turns the bytes of a row of int8 into numbers.
struct Scale {
  float scale = 0;
  float offset = 0;
};

/// Computes in binary64, where the difference of two floats cannot overflow.
void store_int8_row(std::span<const float> row, std::byte* to) {
  const auto [least, largest] = std::ranges::minmax(row);
  const double range = double{largest} - double{least};
  const Scale scale = {static_cast<float>(range / kLevels), least};
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double level =
        scale.scale == 0 ? 0 : (double{row[i]} - double{least}) / double{scale.scale};
    to[i] = static_cast<std::byte>(std::clamp(std::floor(level + 0.5), 0.0, kLevels));
  }
  std::memcpy(to + row.size(), &scale, sizeof(scale));
}

void unstore_int8_row(const std::byte* from, std::span<float> row) {
  Scale scale;
  std::memcpy(&scale, from + row.size(), sizeof(scale));
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(std::to_integer<int>(from[i])) * scale.scale + scale.offset;
}

}  // namespace

std::string_view stored_dtype(RowType type) noexcept {
  switch (type) {
    case RowType::kFloat32:
      return "F32";
    case RowType::kBfloat16:
      return "BF16";
    case RowType::kInt8:
      return "U8";
  }
  return "";
}

std::int64_t stored_columns(RowType type, std::int64_t dim) noexcept {
  return type == RowType::kInt8 ? dim + kScaleBytes : dim;
}

std::int64_t stored_row_bytes(RowType type, std::int64_t dim) noexcept {
  return stored_columns(type, dim) * bytes_per_element(type);
}

void store_rows(RowType type, std::int64_t dim, std::span<const float> rows, std::byte* to) {
  const FloatEnvironment ours;
  switch (type) {
    case RowType::kFloat32:
      std::memcpy(to, rows.data(), rows.size_bytes());
      return;
    case RowType::kBfloat16:
      for (const float x : rows) {
        const std::uint16_t half = rounded_to_nearest(x);
        std::memcpy(to, &half, sizeof(half));
        to += sizeof(half);
      }
      return;
    case RowType::kInt8:
      for (; !rows.empty(); rows = rows.subspan(dim), to += stored_row_bytes(type, dim))
        store_int8_row(rows.first(dim), to);
  }
}

void unstore_rows(RowType type, std::int64_t dim, const std::byte* from, std::span<float> rows) {
  const FloatEnvironment ours;
  switch (type) {
    case RowType::kFloat32:
      std::memcpy(rows.data(), from, rows.size_bytes());
      return;
    case RowType::kBfloat16:
      for (float& x : rows) {
        std::uint16_t half = 0;
        std::memcpy(&half, from, sizeof(half));
        x = widened(half);
        from += sizeof(half);
      }
      return;
    case RowType::kInt8:
      for (; !rows.empty(); rows = rows.subspan(dim), from += stored_row_bytes(type, dim))
        unstore_int8_row(from, rows.first(dim));
  }
}

}  // namespace embertable::checkpoint
